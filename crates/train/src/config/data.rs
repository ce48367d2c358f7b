//! `[data]`

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thinwire_data::TokenizerSource;

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
