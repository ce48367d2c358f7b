//! What can go wrong with a checkpoint.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use thinwire_codec::MemoryError;

use crate::config::ConfigError;

/// Why a checkpoint could not be written, listed or restored.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused an operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written, as on a full disk; nothing of this stage's part of the checkpoint is left.
    #[error("cannot write {}; this stage's part of the checkpoint takes {needed} bytes", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Size of all files that were to be written, in bytes.
        needed: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The manifest, or the header of a safetensors file, cannot be parsed.
    #[error("{} is damaged", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The manifest describes a model that cannot be.
    #[error("{} describes no model", path.display())]
    Model {
        /// The manifest.
        path: PathBuf,
        /// Which of its numbers is wrong, under its configuration key.
        source: Box<ConfigError>,
    },
    /// What is in a file cannot be remembered.
    #[error("cannot remember the samples in {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// What the memory says.
        source: MemoryError,
    },
    /// Something is not as the manifest, the model or the run says.
    #[error("{}: {what}: expected {expected}, found {found}", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs, such as ``tensor `lm_head.weight`: shape``.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl CheckpointError {
    /// For `map_err`: `action` on `path` failed.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// Whether a file or folder was not there.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// `Ok` if `valid`, else the [`CheckpointError::Mismatch`] that says so.
pub(super) fn require(
    valid: bool,
    path: &Path,
    what: impl Display,
    expected: impl Display,
    found: impl Display,
) -> Result<(), CheckpointError> {
    if valid {
        return Ok(());
    }
    Err(CheckpointError::Mismatch {
        path: path.into(),
        what: what.to_string(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}
