//! What can be wrong with a text or a tokenizer.

use std::io;
use std::path::PathBuf;
use std::str::Utf8Error;

/// Why a text or a tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not in the `tokenizer.json` format.
    #[error("{} is not a usable tokenizer.json", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the tokenizers library said.
        source: tokenizers::Error,
    },
    /// The text could not be tokenized.
    #[error("cannot tokenize {}", path.display())]
    Text {
        /// The text.
        path: PathBuf,
        /// Why not.
        source: TokenizeError,
    },
    /// The text has too few tokens to predict one from another.
    #[error("{} holds {tokens} tokens; at least 2 are needed", path.display())]
    TooShort {
        /// The text.
        path: PathBuf,
        /// How many it holds.
        tokens: usize,
    },
}

/// Why a tokenizer could not turn text into token ids or back.
#[derive(Debug, thiserror::Error)]
pub enum TokenizeError {
    /// The text is not UTF-8, which a `tokenizer.json` needs.
    #[error("not UTF-8 text")]
    NotUtf8(#[source] Utf8Error),
    /// An id outside the vocabulary.
    #[error("token {id} is not in the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// The vocabulary's size.
        vocab_size: usize,
    },
    /// The tokenizer failed.
    #[error("the tokenizer failed")]
    Tokenizer(#[source] tokenizers::Error),
}
