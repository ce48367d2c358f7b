//! What can go wrong with a model on disk.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why a model could not be opened, read, written or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// The path is neither a folder with a `config.json` nor a `.gguf` file.
    #[error("{} is no model: {found}; expected a Hugging Face folder or a .gguf file", path.display())]
    NoModel {
        /// The path asked for.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// A JSON file cannot be parsed.
    #[error("{} is damaged", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The file asks for something that Thinwire does not compute or read.
    #[error("{}: `{field}` is {found}, which is not supported; supported: {supported}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field of the configuration, the key of the metadata, or the tensor.
        field: String,
        /// Its value.
        found: String,
        /// What it may be.
        supported: String,
    },
    /// Something in the file is not as the rest of the file, or the caller, says.
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
    /// The tensors of the file are not those of the model its configuration describes.
    #[error("{} does not hold the model it describes: missing: {}; unexpected: {}", path.display(), list(missing), list(unexpected))]
    Tensors {
        /// The file or folder.
        path: PathBuf,
        /// Names the model needs and the file lacks.
        missing: Vec<String>,
        /// Names the file has and the model does not know.
        unexpected: Vec<String>,
    },
    /// The caller of [`export`](crate::export()) failed to give a tensor.
    #[error("cannot export tensor `{name}`")]
    Source {
        /// Its name.
        name: String,
        /// What the caller said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub, or the way to it, failed.
    #[error("cannot fetch `{model}` (revision `{revision}`) from the Hugging Face hub: {what}")]
    Hub {
        /// Owner and name of the model.
        model: String,
        /// Branch, tag or commit.
        revision: String,
        /// What was tried.
        what: String,
        /// What the client said.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl Error {
    /// For `map_err`: `action` on `path` failed.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// For `map_err`: the JSON file `path` cannot be parsed.
    pub(crate) fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        move |source| Self::Json { path: path.into(), source }
    }

    pub(crate) fn mismatch(
        path: &Path,
        what: impl Display,
        expected: impl Display,
        found: impl Display,
    ) -> Self {
        Self::Mismatch {
            path: path.into(),
            what: what.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    pub(crate) fn unsupported(
        path: &Path,
        field: impl Display,
        found: impl Display,
        supported: impl Display,
    ) -> Self {
        Self::Unsupported {
            path: path.into(),
            field: field.to_string(),
            found: found.to_string(),
            supported: supported.to_string(),
        }
    }
}

/// `Ok` if `valid`, else the [`Error::Mismatch`] that says so.
pub(crate) fn require(
    valid: bool,
    path: &Path,
    what: impl Display,
    expected: impl Display,
    found: impl Display,
) -> Result<(), Error> {
    if valid { Ok(()) } else { Err(Error::mismatch(path, what, expected, found)) }
}

/// The first few names of a list that may be long.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names {
        [] => "none".into(),
        names if names.len() <= SHOWN => names.join(", "),
        names => format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN),
    }
}
