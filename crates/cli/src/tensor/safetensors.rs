//! Tensors in .safetensors files.

use std::path::Path;

use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use thinwire_codec::DType;

use super::{Entry, Listing, Tensor, TensorFileError, Values};
use crate::files;

/// The length of the header, in front of it.
const LENGTH_BYTES: usize = 8;

/// The longest header that the safetensors library reads, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// Names listed in an error; a model's file may have hundreds.
const LISTED: usize = 20;

pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    name: Option<&str>,
) -> Result<(String, Tensor), TensorFileError> {
    let unusable = |source| TensorFileError::Safetensors { path: path.into(), source };
    let file = SafeTensors::deserialize(bytes).map_err(unusable)?;
    let mut names = file.names();
    names.sort_unstable();
    let name = match (name, &names[..]) {
        (Some(name), _) if names.contains(&name) => name,
        (Some(name), _) => {
            let (name, known) = (name.to_owned(), list(&names));
            return Err(TensorFileError::NoSuchTensor { path: path.into(), name, known });
        }
        (None, [only]) => only,
        (None, _) => return Err(TensorFileError::Unnamed { path: path.into(), known: list(&names) }),
    };
    let tensor = file.tensor(name).map_err(unusable)?;
    let dtype = match tensor.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        found => return Err(TensorFileError::DType { path: path.into(), name: name.to_owned(), found }),
    };
    let values = Values::from_le_bytes(dtype, tensor.data());
    Ok((name.to_owned(), Tensor { dims: tensor.shape().to_vec(), values }))
}

/// What the file holds; only the header is read.
pub(super) fn read_listing(path: &Path) -> Result<Listing, TensorFileError> {
    let unusable = |source| TensorFileError::Safetensors { path: path.into(), source };
    let (bytes, length) = files::read_start(path, LENGTH_BYTES as u64)?;
    let length: [u8; LENGTH_BYTES] =
        length.try_into().map_err(|_| unusable(SafeTensorError::HeaderTooSmall))?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(unusable(SafeTensorError::HeaderTooLarge));
    }
    let end = LENGTH_BYTES as u64 + length;
    if end > bytes {
        return Err(unusable(SafeTensorError::InvalidHeaderLength));
    }
    let (_, start) = files::read_start(path, end)?;
    let header: Metadata = serde_json::from_slice(&start[LENGTH_BYTES.min(start.len())..])
        .map_err(|source| unusable(SafeTensorError::InvalidHeaderDeserialization(source)))?;
    if end.checked_add(header.data_len() as u64) != Some(bytes) {
        return Err(unusable(SafeTensorError::MetadataIncompleteBuffer));
    }
    let entry = |name: String| {
        let info = header.info(&name)?;
        let bytes = (info.data_offsets.1 - info.data_offsets.0) as u64;
        Some(Entry { name, dtype: info.dtype.to_string(), shape: info.shape.clone(), bytes })
    };
    let tensors = header.offset_keys().into_iter().filter_map(entry).collect();
    let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
    Ok(Listing { tensors, metadata, bytes })
}

pub(super) fn to_bytes(name: &str, tensor: &Tensor, path: &Path) -> Result<Vec<u8>, TensorFileError> {
    let dtype = match tensor.dtype() {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
    };
    let data = tensor.values.to_le_bytes();
    TensorView::new(dtype, tensor.dims.clone(), &data)
        .and_then(|view| safetensors::serialize([(name, view)], None))
        .map_err(|source| TensorFileError::Safetensors { path: path.into(), source })
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "no tensors".to_owned();
    }
    let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", listed.join(", "))
}
