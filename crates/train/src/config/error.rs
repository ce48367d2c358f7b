//! What can be wrong with a configuration.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use super::LayerMapError;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the file is not valid.
    #[error("in the configuration {}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is not valid.
        source: Box<ConfigError>,
    },
    /// The text is not TOML.
    #[error("not valid TOML")]
    Syntax(#[source] toml::de::Error),
    /// A `--set` argument could not be applied.
    #[error("--set {text}: {reason}")]
    Override {
        /// The argument.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that no section has.
    #[error("{key}: unknown key; {hint}")]
    UnknownKey {
        /// The key as written, dotted.
        key: String,
        /// The known key that it is meant to be, or those that there are.
        hint: String,
    },
    /// A key is missing, or its value has the wrong type or form.
    #[error("{}{reason}", key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
    Value {
        /// The key, dotted; none if a whole section is missing.
        key: Option<String>,
        /// What is wrong, from the value's own parser.
        reason: String,
    },
    /// A value is outside what the run can use.
    #[error("{key} = {value}: expected {expected}")]
    Invalid {
        /// The key, dotted.
        key: String,
        /// The value found.
        value: String,
        /// What is valid.
        expected: String,
    },
    /// `pipeline.layers` does not give every unit to exactly one stage.
    #[error("pipeline.layers")]
    Layers(#[source] LayerMapError),
    /// The model that `model.pretrained` names cannot be used.
    #[error("model.pretrained")]
    Pretrained {
        /// Why not.
        source: Box<thinwire_pretrained::Error>,
    },
    /// The configuration could not be written as TOML.
    #[error("cannot write the configuration as TOML")]
    Write(#[source] toml::ser::Error),
}

impl ConfigError {
    /// Adds the file the error is about.
    pub(super) fn within(self, path: &Path) -> Self {
        Self::In { path: path.into(), source: Box::new(self) }
    }
}

/// `Ok` if `valid`, else the error that says so.
///
/// # Errors
/// [`ConfigError::Invalid`], with the three texts.
pub fn require(
    valid: bool,
    key: impl Display,
    value: impl Display,
    expected: impl Display,
) -> Result<(), ConfigError> {
    if valid {
        return Ok(());
    }
    Err(ConfigError::Invalid {
        key: key.to_string(),
        value: value.to_string(),
        expected: expected.to_string(),
    })
}

/// More than any tensor dimension or count in use, and little enough that products of two do not overflow.
const LARGEST: usize = 1 << 24;

/// Checks that `value` is a size that something can have.
pub(super) fn require_size(key: &str, value: usize) -> Result<(), ConfigError> {
    require((1..=LARGEST).contains(&value), key, value, format_args!("from 1 to {LARGEST}"))
}

/// Whether a value is positive and neither rounds to 0 nor to infinity in f32, in which the model computes.
pub(super) fn f32_is_normal(value: f64) -> bool {
    value > 0.0 && (value as f32).is_normal()
}
