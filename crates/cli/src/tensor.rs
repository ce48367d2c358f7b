//! Tensors in memory and in files.

mod error;
mod listing;
mod npy;
mod safetensors;
mod values;

use std::path::Path;

use thinwire_codec::{CodecError, DType, Shape, TensorView, TensorViewMut};

pub(crate) use error::TensorFileError;
pub(crate) use listing::{Entry, Listing};
use values::Values;

use crate::files;

/// A contiguous row-major tensor of any rank.
#[derive(Debug, PartialEq)]
pub(crate) struct Tensor {
    dims: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// A tensor of zeros.
    pub(crate) fn zeros(dims: Vec<usize>, dtype: DType) -> Result<Self, CodecError> {
        let values = Values::zeros(dtype, codec_shape(&dims)?.elements()?);
        Ok(Self { dims, values })
    }

    /// The extent of each dimension.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The number format.
    pub(crate) fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The tensor as codecs see it.
    pub(crate) fn view(&self) -> Result<TensorView<'_>, CodecError> {
        TensorView::new(codec_shape(&self.dims)?, self.values.borrow())
    }

    /// The tensor as codecs write it.
    pub(crate) fn view_mut(&mut self) -> Result<TensorViewMut<'_>, CodecError> {
        TensorViewMut::new(codec_shape(&self.dims)?, self.values.borrow_mut())
    }
}

/// Any rank as `[samples, tokens, channels]`: the last dimension is channels, the one before it tokens, the
/// product of the others samples; what is missing is 1.
pub(crate) fn codec_shape(dims: &[usize]) -> Result<Shape, CodecError> {
    let (channels, rest) = dims.split_last().map_or((1, dims), |(last, rest)| (*last, rest));
    let (tokens, rest) = rest.split_last().map_or((1, rest), |(last, rest)| (*last, rest));
    let samples = rest.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
    let shape = Shape::new(samples.unwrap_or(usize::MAX), tokens, channels);
    if samples.is_none() { Err(CodecError::TooLarge { shape }) } else { Ok(shape) }
}

/// Reads the tensor called `name`, or the only one, from a .safetensors or .npy file; returns its name too.
pub(crate) fn read(path: &Path, name: Option<&str>) -> Result<(String, Tensor), TensorFileError> {
    let format = Format::of(path)?;
    let bytes = files::read(path)?;
    match format {
        Format::Safetensors => safetensors::parse(&bytes, path, name),
        Format::Npy => npy::parse(&bytes, path, name),
    }
}

/// What a .safetensors file holds; only its header is read.
pub(crate) fn list_safetensors(path: &Path) -> Result<Listing, TensorFileError> {
    safetensors::read_listing(path)
}

/// What a .npy file holds; only its header is read.
pub(crate) fn list_npy(path: &Path) -> Result<Listing, TensorFileError> {
    npy::read_listing(path)
}

/// Writes a .safetensors file with one tensor, or a .npy file.
pub(crate) fn write(path: &Path, name: &str, tensor: &Tensor) -> Result<(), TensorFileError> {
    let bytes = match Format::of(path)? {
        Format::Safetensors => safetensors::to_bytes(name, tensor, path)?,
        Format::Npy => npy::to_bytes(tensor, path)?,
    };
    Ok(files::write(path, &bytes)?)
}

enum Format {
    Safetensors,
    Npy,
}

impl Format {
    fn of(path: &Path) -> Result<Self, TensorFileError> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors") => Ok(Self::Safetensors),
            Some("npy") => Ok(Self::Npy),
            _ => Err(TensorFileError::Extension { path: path.into() }),
        }
    }
}
