//! `[data]`

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::paths::join;
use super::text;

/// The texts and the tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataConfig {
    /// The training text, one UTF-8 file; it and its tokens (4 bytes each) are held in memory. Required.
    pub train: PathBuf,
    /// The held-out text for evaluation. Default: none, and nothing is evaluated.
    #[serde(default)]
    pub heldout: Option<PathBuf>,
    /// `"byte"`, or the path of a `tokenizer.json`. Default `"byte"`.
    #[serde(default, with = "text")]
    pub tokenizer: TokenizerSource,
}

impl DataConfig {
    /// Makes relative paths relative to `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.train = join(folder, &self.train);
        self.heldout = self.heldout.as_ref().map(|path| join(folder, path));
        if let TokenizerSource::File(path) = &mut self.tokenizer {
            *path = join(folder, path);
        }
    }
}

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
