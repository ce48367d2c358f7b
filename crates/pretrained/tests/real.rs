//! Real models, fetched by `cargo xtask assets`. Without them a test says that it was skipped.
mod assets;

use thinwire_pretrained::{Family, Pretrained};

#[test]
fn smollm2() {
    let Some(path) = assets::find("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let model = Pretrained::open(path).unwrap();
    let config = model.config();
    assert_eq!((config.family, config.layers, config.hidden), (Family::Llama, 30, 576));
    println!("{config:?}");
    let t = model.tokenizer().unwrap();
    println!("{:?} {:?} {:?} {}", t.bos, t.eos, t.stop, t.vocab_size);
    let tok = tokenizers::Tokenizer::from_bytes(&t.json).unwrap();
    println!("{:?}", tok.encode("Hello 123  world\n", false).unwrap().get_ids());
}
