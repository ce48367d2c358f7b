//! Where a tokenizer comes from.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the tokenizer comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TokenizerSource {
    /// Every byte is a token: 256 of them.
    #[default]
    Byte,
    /// A `tokenizer.json` of the Hugging Face tokenizers library.
    File(PathBuf),
}

impl fmt::Display for TokenizerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte => f.write_str("byte"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for TokenizerSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "byte" { Self::Byte } else { Self::File(text.into()) })
    }
}
