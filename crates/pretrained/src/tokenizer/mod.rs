//! The tokenizer that comes with a model, as a `tokenizer.json` and what stands beside it.

mod added;
mod byte_level;
mod bytes;
mod folder;
mod gguf;
mod sentence_piece;

pub(crate) use gguf::from_gguf;

use std::path::Path;

use crate::Error;
use crate::gguf::{Gguf, Metadata, is_gguf};

pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
pub(crate) const CHAT_TEMPLATE: &str = "chat_template.jinja";
pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";

/// A tokenizer and its settings. Nothing here depends on a tokenizer library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerFiles {
    /// Content of the `tokenizer.json`.
    pub json: Vec<u8>,
    /// Ids lie below this; at most the model's vocabulary.
    pub vocab_size: usize,
    /// Jinja template that turns a conversation into text.
    pub chat_template: Option<String>,
    /// Token at the begin of a text.
    pub bos: Option<SpecialToken>,
    /// Token at the end of a text or turn.
    pub eos: Option<SpecialToken>,
    /// Ids that end generation: `eos`, and what the model's makers add to it.
    pub stop: Vec<u32>,
    /// Whether the model expects every text to begin with `bos`.
    pub add_bos: bool,
}

impl TokenizerFiles {
    /// Reads a `tokenizer.json` at `path`, and the settings beside it as far as they exist: `tokenizer_config.json`,
    /// `chat_template.jinja`, `generation_config.json`, `config.json`. Of a `.gguf` file, of whatever model, it reads the
    /// tokenizer alone.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the settings name a special token that is none; a tokenizer in a `.gguf` file
    /// is of a kind that is not supported.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if is_gguf(path) { from_gguf(path, Gguf::open(path)?.metadata()) } else { folder::read(path) }
    }
}

/// A token with a meaning of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialToken {
    /// Its id.
    pub id: u32,
    /// Its text, as in chat templates.
    pub text: String,
}

/// Where the tokenizer is.
#[derive(Debug)]
pub(crate) enum Source {
    /// In the model's folder.
    Folder,
    /// In the metadata of a GGUF file.
    Gguf(Box<Metadata>),
}
