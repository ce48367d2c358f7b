//! Weight files and their index.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, Value, json};

use super::{Export, ExportFormat, files};
use crate::error::require;
use crate::folder::{INDEX, WEIGHTS};
use crate::{Error, TensorSpec};

/// Values converted at a time.
const CHUNK: usize = 16 * 1024;

/// Writes one file, or several and an index.
pub(super) fn write(
    folder: &Path,
    export: &Export<'_>,
    tensor: &mut dyn FnMut(&TensorSpec) -> Result<Vec<f32>, Error>,
) -> Result<(), Error> {
    let shards = shards(export);
    let names: Vec<String> = match shards.len() {
        1 => vec![WEIGHTS.into()],
        count => (1..=count).map(|shard| format!("model-{shard:05}-of-{count:05}.safetensors")).collect(),
    };
    for (shard, name) in shards.iter().zip(&names) {
        let tensors: Vec<(&str, &TensorSpec)> = shard.iter().map(|spec| (&*spec.name, spec)).collect();
        write_file(&folder.join(name), export.format, &tensors, tensor)?;
    }
    if shards.len() == 1 {
        return Ok(());
    }
    let total: u64 = shards.iter().flatten().map(|spec| bytes(export.format, spec)).sum();
    let map: Map<String, Value> = shards
        .iter()
        .zip(&names)
        .flat_map(|(shard, name)| shard.iter().map(move |spec| (spec.name.clone(), json!(name))))
        .collect();
    files::write_json(&folder.join(INDEX), &json!({ "metadata": { "total_size": total }, "weight_map": map }))
}

/// The tensors of each file, in order.
fn shards(export: &Export<'_>) -> Vec<Vec<TensorSpec>> {
    let mut shards: Vec<Vec<TensorSpec>> = vec![Vec::new()];
    let mut filled = 0_u64;
    for spec in export.config.tensors() {
        let bytes = bytes(export.format, &spec);
        if filled > 0 && filled.saturating_add(bytes) > export.shard_bytes {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += bytes;
        shards.last_mut().expect("one at least").push(spec);
    }
    shards
}

fn bytes(format: ExportFormat, spec: &TensorSpec) -> u64 {
    (spec.len() * format.bytes()) as u64
}

/// Writes one file of `tensors`, each under the name beside it.
pub(super) fn write_file(
    path: &Path,
    format: ExportFormat,
    tensors: &[(&str, &TensorSpec)],
    tensor: &mut dyn FnMut(&TensorSpec) -> Result<Vec<f32>, Error>,
) -> Result<(), Error> {
    let file = File::create_new(path).map_err(Error::io("create", path))?;
    let mut out = BufWriter::new(file);
    out.write_all(&header(format, tensors)).map_err(Error::io("write", path))?;
    for (_, spec) in tensors {
        let values = tensor(spec)?;
        let what = format_args!("number of values of tensor `{}`", spec.name);
        require(values.len() == spec.len(), path, what, spec.len(), values.len())?;
        if let Some(value) = values.iter().find(|value| !format.holds(**value)) {
            let what = format_args!("tensor `{}`", spec.name);
            let expected = format_args!("values that fit {}", format.name());
            return Err(Error::mismatch(path, what, expected, value));
        }
        write_values(&mut out, format, &values).map_err(Error::io("write", path))?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error).map_err(Error::io("write", path))?;
    file.sync_all().map_err(Error::io("write", path))
}

fn write_values(out: &mut impl Write, format: ExportFormat, values: &[f32]) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK * format.bytes());
    for values in values.chunks(CHUNK) {
        chunk.clear();
        format.encode(values, &mut chunk);
        out.write_all(&chunk)?;
    }
    Ok(())
}

/// Everything in front of the values, padded so that they start at a multiple of 8 bytes.
fn header(format: ExportFormat, tensors: &[(&str, &TensorSpec)]) -> Vec<u8> {
    let mut end = 0;
    let infos = tensors.iter().map(|(name, spec)| {
        let start = end;
        end += spec.len() * format.bytes();
        let data_offsets = (start, end);
        ((*name).to_owned(), TensorInfo { dtype: format.dtype(), shape: spec.shape.clone(), data_offsets })
    });
    // Without this entry transformers does not load a file.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let metadata = Metadata::new(Some(metadata), infos.collect()).expect("the tensors follow each other");
    let mut json = serde_json::to_vec(&metadata).expect("a header is plain data");
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}
