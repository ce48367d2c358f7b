//! The header of a safetensors file, on its way in.

use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata};

use super::CheckpointError;
use super::error::require;
use super::layout::Kind;
use super::tensors::TensorSpec;

/// Key of the number of updates in the metadata of an optimizer file.
pub(super) const UPDATES: &str = "updates";

/// More than the header of the largest unit needs, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// A header that fits the model.
pub(super) struct Header {
    /// For each tensor in the order of the file, its place among the specs.
    pub(super) order: Vec<usize>,
    /// Updates the optimizer had made; 0 in a file of weights.
    pub(super) updates: usize,
    /// Size of the whole file as announced.
    pub(super) file_bytes: u64,
}

impl Header {
    /// Reads the header and leaves `file` at the first value. It must announce the tensors `specs`; none in the
    /// optimizer file of a run without an update.
    pub(super) fn read(
        mut file: impl Read,
        path: &Path,
        kind: Kind,
        specs: &[TensorSpec],
    ) -> Result<Self, CheckpointError> {
        let mut len = [0; 8];
        file.read_exact(&mut len).map_err(CheckpointError::io("read", path))?;
        let len = u64::from_le_bytes(len);
        require(len <= MAX_BYTES, path, "length of the header", format_args!("at most {MAX_BYTES}"), len)?;
        let mut json = vec![0; len as usize];
        file.read_exact(&mut json).map_err(CheckpointError::io("read", path))?;
        let metadata: Metadata = serde_json::from_slice(&json)
            .map_err(|source| CheckpointError::Malformed { path: path.into(), source })?;
        let updates = match kind {
            Kind::Weights => 0,
            Kind::Optimizer => updates(&metadata, path)?,
        };
        let empty = kind == Kind::Optimizer && updates == 0;
        let order = order(&metadata, path, if empty { &[] } else { specs })?;
        Ok(Self { order, updates, file_bytes: 8 + len + metadata.data_len() as u64 })
    }
}

fn updates(metadata: &Metadata, path: &Path) -> Result<usize, CheckpointError> {
    let text = metadata.metadata().as_ref().and_then(|entries| entries.get(UPDATES));
    let text = text.map_or("nothing", String::as_str);
    text.parse().map_err(|_| CheckpointError::Mismatch {
        path: path.into(),
        what: format!("metadata entry `{UPDATES}`"),
        expected: "a number".into(),
        found: text.into(),
    })
}

/// The place among `specs` of each tensor in the file, after a check that they are the same tensors.
fn order(metadata: &Metadata, path: &Path, specs: &[TensorSpec]) -> Result<Vec<usize>, CheckpointError> {
    for TensorSpec { name, shape } in specs {
        let found = metadata.info(name);
        let shown = found.map_or("none".into(), |info| format!("{:?} {:?}", info.dtype, info.shape));
        let valid = found.is_some_and(|info| info.dtype == Dtype::F32 && info.shape == *shape);
        require(valid, path, format_args!("tensor `{name}`"), format_args!("F32 {shape:?}"), shown)?;
    }
    let place = |name: String| {
        let place = specs.iter().position(|spec| spec.name == name);
        place.ok_or_else(|| CheckpointError::Mismatch {
            path: path.into(),
            what: format!("tensor `{name}`"),
            expected: "none of this name".into(),
            found: "one".into(),
        })
    };
    metadata.offset_keys().into_iter().map(place).collect()
}
