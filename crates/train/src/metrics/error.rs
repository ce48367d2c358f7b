//! Errors of the metrics files.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a run's metrics could not be written or read.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The operating system refused: a full disk, a missing right, ...
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A new run would overwrite the records of an earlier one.
    #[error("{} is there already: resume that run, or choose another folder for this one", path.display())]
    Exists {
        /// The file of the earlier run.
        path: PathBuf,
    },
    /// A complete line that is not a record.
    #[error("{}, line {line}: not a metrics record", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser expected.
        source: serde_json::Error,
    },
    /// A curve without a single finite point.
    #[error("nothing to plot: `{label}` has no finite loss")]
    EmptyCurve {
        /// The curve's label.
        label: String,
    },
    /// The drawing library's complaint.
    #[error("cannot draw the loss curves: {reason}")]
    Draw {
        /// Its words.
        reason: String,
    },
}

impl MetricsError {
    /// For `map_err`: an [`Io`](MetricsError::Io) error of `action` on `path`.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MetricsError {
        move |source| MetricsError::Io { action, path: path.to_owned(), source }
    }
}
