//! Writes a model as a Hugging Face folder: `cargo run --example convert -- MODEL FOLDER`.

use std::env;
use std::error::Error;

use thinwire_pretrained::{Export, Pretrained, export};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, folder] = &arguments[..] else { return Err("usage: convert MODEL FOLDER".into()) };
    let model = Pretrained::open(model)?;
    let tokenizer = model.tokenizer()?;
    let options = Export { tokenizer: Some(&tokenizer), ..Export::new(model.config()) };
    export(folder, &options, |tensor| model.read(&tensor.name, &tensor.shape))?;
    eprintln!("{}: {:?}", model.path().display(), model.config());
    Ok(())
}
