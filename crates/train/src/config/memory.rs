//! `[pipeline.memory]`

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ByteSize;
use super::paths::join;

/// Where `aqsgd` remembers the samples, at each end of each boundary. Each process may have its own settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryConfig {
    /// In the process, or in a file. Default `"ram"`.
    pub place: MemoryPlace,
    /// Most bytes that one end of a boundary may keep; a run that would need more is not started. Default `"8GiB"`.
    pub limit: ByteSize,
    /// Folder of the files. Default: `run.dir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
}

/// Where samples are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPlace {
    /// In the process.
    Ram,
    /// In a file without a name, which is gone with the process.
    File,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { place: MemoryPlace::Ram, limit: ByteSize(8 << 30), dir: None }
    }
}

impl MemoryConfig {
    /// Makes the folder absolute, seen from `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(dir) = &mut self.dir {
            *dir = join(folder, dir);
        }
    }
}
