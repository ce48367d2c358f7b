//! What can be wrong with a tensor file.

use std::path::PathBuf;

use safetensors::{Dtype, SafeTensorError};

use super::npy::NpyError;
use crate::files::FileError;

/// Why a tensor was not read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TensorFileError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file's name does not say what it is.
    #[error("{}: expected a name that ends in .safetensors or .npy", path.display())]
    Extension { path: PathBuf },
    /// The safetensors library refused it.
    #[error("{} is not a usable safetensors file", path.display())]
    Safetensors { path: PathBuf, source: SafeTensorError },
    /// No tensor has the name asked for.
    #[error("{} has no tensor {name:?}; it has {known}", path.display())]
    NoSuchTensor { path: PathBuf, name: String, known: String },
    /// No name was given, and there is not exactly one tensor.
    #[error("{}: choose a tensor with --tensor; the file has {known}", path.display())]
    Unnamed { path: PathBuf, known: String },
    /// The tensor's values are not floating-point numbers of 32 or 16 bits.
    #[error("tensor {name:?} of {} holds {found} values: expected F32, F16 or BF16", path.display())]
    DType { path: PathBuf, name: String, found: Dtype },
    /// A name was given for a file whose tensor has none.
    #[error("{}: a .npy file holds one tensor without a name; leave out --tensor", path.display())]
    NamedNpy { path: PathBuf },
    /// The .npy header or data is not what this reader takes.
    #[error("{} is not a usable .npy file", path.display())]
    Npy { path: PathBuf, source: NpyError },
    /// The .npy format has no bf16.
    #[error("{}: .npy has no bf16 values; write to a .safetensors file", path.display())]
    NoBf16 { path: PathBuf },
}
