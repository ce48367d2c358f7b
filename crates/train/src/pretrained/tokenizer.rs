//! The tokenizer that comes with a model.

use std::path::Path;

use thinwire_pretrained::{Error, Pretrained, TokenizerFiles};

use crate::config::TokenizerSource;
use crate::data::{DataError, Tokenizer};

/// Why there is no tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// Its file cannot be read or used.
    #[error(transparent)]
    File(#[from] DataError),
    /// The model that it comes with cannot be opened, or has none that can be used.
    #[error(transparent)]
    Model(#[from] Error),
}

/// The tokenizer that `source` names: its path may also be that of a model, a Hugging Face folder or a `.gguf` file.
///
/// # Errors
/// The file or the model cannot be read, or has no tokenizer that can be used.
pub fn load_tokenizer(source: &TokenizerSource) -> Result<Tokenizer, TokenizerError> {
    match source {
        TokenizerSource::File(path) if is_model(path) => {
            let files = Pretrained::open(path)?.tokenizer()?;
            Ok(Tokenizer::from_json(&files.json, path)?)
        }
        source => Ok(Tokenizer::load(source)?),
    }
}

/// The tokenizer that `source` names as files, with what stands beside a `tokenizer.json`.
///
/// # Errors
/// The file or the model cannot be read, or has no tokenizer that can be used.
pub fn read_tokenizer(source: &TokenizerSource) -> Result<TokenizerFiles, Error> {
    match source {
        TokenizerSource::Byte => Ok(TokenizerFiles::bytes()),
        TokenizerSource::File(path) if is_model(path) => Pretrained::open(path)?.tokenizer(),
        TokenizerSource::File(path) => TokenizerFiles::read(path),
    }
}

/// Whether `path` looks like a model that others made: a folder with a `config.json` or a `.gguf` file.
pub fn is_model(path: &Path) -> bool {
    let is_gguf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    if path.is_dir() { path.join("config.json").is_file() } else { is_gguf }
}
