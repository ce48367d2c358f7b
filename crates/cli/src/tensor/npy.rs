//! Tensors in .npy files (`NumPy`'s own format, versions 1 to 3): little-endian f32 or f16 in C order.

mod header;

use std::collections::BTreeMap;
use std::path::Path;

use thinwire_codec::DType;

pub(crate) use header::NpyError;
use header::{Header, MAGIC};

use super::{Entry, Listing, Tensor, TensorFileError, Values};
use crate::files;

/// More than a header has that is no attack, in bytes.
const LONGEST_HEADER: u64 = 1 << 20;

/// The header is padded to a multiple of this many bytes, so that the data is aligned.
const ALIGNMENT: usize = 64;

/// Magic, version, and the 16-bit header length of version 1.
const PREFIX_LEN: usize = MAGIC.len() + 4;

pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    name: Option<&str>,
) -> Result<(String, Tensor), TensorFileError> {
    if name.is_some() {
        return Err(TensorFileError::NamedNpy { path: path.into() });
    }
    let tensor = parse_tensor(bytes).map_err(|source| TensorFileError::Npy { path: path.into(), source })?;
    Ok((stem(path), tensor))
}

fn parse_tensor(bytes: &[u8]) -> Result<Tensor, NpyError> {
    let (header, data) = Header::split_from(bytes)?;
    let dtype = match &*header.descr {
        "<f4" => DType::F32,
        "<f2" => DType::F16,
        _ => return Err(NpyError::DType { found: header.descr }),
    };
    if header.fortran_order {
        return Err(NpyError::FortranOrder);
    }
    check_length(&header, data.len() as u64)?;
    Ok(Tensor { dims: header.dims, values: Values::from_le_bytes(dtype, data) })
}

/// What the file holds; only the header is read.
pub(super) fn read_listing(path: &Path) -> Result<Listing, TensorFileError> {
    let (file_len, start) = files::read_start(path, LONGEST_HEADER)?;
    let list = || {
        let (header, data) = Header::split_from(&start)?;
        let bytes = file_len - (start.len() - data.len()) as u64;
        check_length(&header, bytes)?;
        Ok(Entry { name: stem(path), dtype: header.descr, shape: header.dims, bytes })
    };
    let entry = list().map_err(|source| TensorFileError::Npy { path: path.into(), source })?;
    Ok(Listing { tensors: vec![entry], metadata: BTreeMap::new(), bytes: file_len })
}

fn check_length(header: &Header, found: u64) -> Result<(), NpyError> {
    if header.data_len() == Some(found) {
        return Ok(());
    }
    Err(NpyError::DataLength { dims: header.dims.clone(), dtype: header.descr.clone(), found })
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) fn to_bytes(tensor: &Tensor, path: &Path) -> Result<Vec<u8>, TensorFileError> {
    let descr = match tensor.dtype() {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::BF16 => return Err(TensorFileError::NoBf16 { path: path.into() }),
    };
    let extents: Vec<String> = tensor.dims.iter().map(ToString::to_string).collect();
    let comma = if extents.len() == 1 { "," } else { "" }; // Python's tuple of one
    let shape = format!("({}{comma})", extents.join(", "));
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Spaces up to the alignment, the last byte a line feed.
    let length = (PREFIX_LEN + dict.len() + 1).next_multiple_of(ALIGNMENT) - PREFIX_LEN;
    let stored_length = u16::try_from(length).map_err(|_| TensorFileError::Npy {
        path: path.into(),
        source: NpyError::TooManyDimensions { found: tensor.dims.len() },
    })?;
    let mut bytes = [MAGIC, &[1, 0], &stored_length.to_le_bytes()].concat();
    bytes.extend(format!("{dict:<width$}\n", width = length - 1).into_bytes());
    bytes.extend(tensor.values.to_le_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests;
