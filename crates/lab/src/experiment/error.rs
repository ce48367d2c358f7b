//! What can be wrong with an experiment.

use std::io;
use std::path::{Path, PathBuf};

use thinwire_data::DataError;
use thinwire_train::config::ConfigError;

/// Why an experiment was refused.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file could not be read.
    #[error("cannot read the experiment {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the file is not valid.
    #[error("in the experiment {}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is not valid.
        source: Box<ExperimentError>,
    },
    /// The text is not TOML, or a key or a value is wrong.
    #[error(transparent)]
    Form(#[from] ConfigError),
    /// The configuration of a row is not valid.
    #[error("the configuration of the row {row}")]
    Row {
        /// The row's name.
        row: String,
        /// What is wrong.
        source: Box<ConfigError>,
    },
    /// A row has no data.
    #[error("{key} of the row {row}")]
    Data {
        /// The setting that names it, dotted.
        key: &'static str,
        /// The row's name.
        row: String,
        /// What is wrong.
        source: DataError,
    },
    /// The configuration of a row does not go with the experiment.
    #[error("the configuration of the row {row} has {found}: expected {expected}")]
    Unfit {
        /// The row's name.
        row: String,
        /// What was found.
        found: String,
        /// What an experiment can use.
        expected: &'static str,
    },
    /// A filter that leaves nothing.
    #[error("no row has `{filter}` in its name; the first row is {first}")]
    NoSuchRow {
        /// The filter.
        filter: String,
        /// A name to see what names look like.
        first: String,
    },
}

impl ExperimentError {
    /// Adds the file the error is about.
    pub(super) fn within(self, path: &Path) -> Self {
        Self::In { path: path.into(), source: Box::new(self) }
    }
}
