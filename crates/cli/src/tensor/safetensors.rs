//! Tensors in .safetensors files.

use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use thinwire_codec::DType;

use super::{Tensor, TensorFileError, Values};

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
