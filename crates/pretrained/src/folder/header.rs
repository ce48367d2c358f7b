//! The header of a safetensors file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata};

use super::Named;
use crate::Error;
use crate::error::require;
use crate::format::Format;
use crate::stored::Stored;

/// The bound of the safetensors library.
const MAX_BYTES: u64 = 100_000_000;

/// The tensors of the file whose name `wanted` accepts.
///
/// The offsets of a header have to cover the rest of the file without gap or overlap; this also bounds every shape.
pub(super) fn read(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Named>, Error> {
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    let file_bytes = file.metadata().map_err(Error::io("open", path))?.len();
    let mut len = [0; 8];
    require(file_bytes >= 8, path, "size in bytes", "at least 8", file_bytes)?;
    file.read_exact(&mut len).map_err(Error::io("read", path))?;
    let len = u64::from_le_bytes(len);
    let most = MAX_BYTES.min(file_bytes - 8);
    let expected = format_args!("at most {most} in a file of {file_bytes} bytes");
    require(len <= most, path, "length of the header", expected, len)?;
    let mut json = vec![0; len as usize];
    file.read_exact(&mut json).map_err(Error::io("read", path))?;
    let metadata: Metadata = serde_json::from_slice(&json).map_err(Error::json(path))?;
    let expected = (8 + len).checked_add(metadata.data_len() as u64);
    let shown = expected.map_or("more than any file has".into(), |bytes| bytes.to_string());
    require(expected == Some(file_bytes), path, "size in bytes", shown, file_bytes)?;

    let mut tensors = Vec::new();
    for (name, info) in metadata.tensors() {
        if wanted(&name) {
            let format = format(path, &name, info.dtype)?;
            let offset = 8 + len + info.data_offsets.0 as u64;
            let stored = Stored { path: path.into(), offset, format, shape: info.shape.clone() };
            tensors.push((name, stored));
        }
    }
    Ok(tensors)
}

fn format(path: &Path, name: &str, dtype: Dtype) -> Result<Format, Error> {
    match dtype {
        Dtype::F32 => Ok(Format::F32),
        Dtype::F16 => Ok(Format::F16),
        Dtype::BF16 => Ok(Format::BF16),
        other => {
            let field = format!("tensor {name}");
            let (path, found) = (path.into(), format!("{other:?}"));
            Err(Error::Unsupported { path, field, found, supported: "F32, F16, BF16".into() })
        }
    }
}
