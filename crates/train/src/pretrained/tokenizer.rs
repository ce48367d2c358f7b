//! The tokenizer that comes with a model.

use std::path::Path;

use thinwire_pretrained::{Error, Pretrained, TokenizerFiles};

use crate::config::TokenizerSource;
use crate::data::{DataError, ModelTexts, Tokenizer};

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

/// The tokenizer that `source` names: its path may also be that of a model, a Hugging Face folder or a `.gguf` file, of
/// which only the tokenizer need be supported.
///
/// # Errors
/// The file or the model cannot be read, or has no tokenizer that can be used.
pub fn load_tokenizer(source: &TokenizerSource) -> Result<Tokenizer, TokenizerError> {
    match source {
        TokenizerSource::File(path) if is_model(path) => Ok(model_tokenizer(&read_tokenizer(source)?, path)?),
        source => Ok(Tokenizer::load(source)?),
    }
}

/// As [`load_tokenizer`], with the tokens that end a text by the files that the tokenizer came in.
///
/// # Errors
/// As [`load_tokenizer`].
pub fn load_tokenizer_and_stop(source: &TokenizerSource) -> Result<(Tokenizer, Vec<u32>), TokenizerError> {
    match source {
        TokenizerSource::File(path) if is_model(path) => {
            let files = read_tokenizer(source)?;
            Ok((model_tokenizer(&files, path)?, files.stop))
        }
        source => Ok((Tokenizer::load(source)?, read_tokenizer(source)?.stop)),
    }
}

/// The tokenizer in `files` of the model in `path`, with the model's chat template.
///
/// # Errors
/// It cannot be understood.
pub fn model_tokenizer(files: &TokenizerFiles, path: &Path) -> Result<Tokenizer, DataError> {
    let named = [("bos_token", &files.bos), ("eos_token", &files.eos)];
    let tokens =
        named.into_iter().filter_map(|(name, token)| Some((name.to_owned(), token.as_ref()?.text.clone())));
    let texts = ModelTexts { chat_template: files.chat_template.clone(), special_tokens: tokens.collect() };
    Tokenizer::of_model(&files.json, path, texts)
}

/// The tokenizer that `source` names as files, with what stands beside a `tokenizer.json`.
///
/// # Errors
/// The file or the model cannot be read, or has no tokenizer that can be used.
pub fn read_tokenizer(source: &TokenizerSource) -> Result<TokenizerFiles, Error> {
    match source {
        TokenizerSource::Byte => Ok(TokenizerFiles::bytes()),
        TokenizerSource::File(path) if path.is_dir() => Pretrained::open(path)?.tokenizer(),
        TokenizerSource::File(path) => TokenizerFiles::read(path),
    }
}

/// Whether `path` looks like a model that others made: a folder with a `config.json` or a `.gguf` file.
pub fn is_model(path: &Path) -> bool {
    let is_gguf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    if path.is_dir() { path.join("config.json").is_file() } else { is_gguf }
}
