//! One safetensors file, on its way out.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use thinwire_data::hash::hex;

use super::FileEntry;
use super::error::{CheckpointError, require};
use super::header::UPDATES;
use super::layout::{Kind, file_name};
use super::pieces::{Pieces, TrainedShare};
use super::tensors::{TensorSpec, specs};
use crate::config::Unit;
use crate::model::Part;
use crate::optim::Moments;

/// Values converted and written at a time.
const CHUNK: usize = 16 * 1024;

/// A file to be written into a checkpoint.
pub(super) trait CheckpointFile {
    fn name(&self) -> &str;

    /// Its size in bytes.
    fn bytes(&self) -> u64;

    /// Writes it; one tensor, or sample, at a time is in host memory.
    fn write_to(&self, out: &mut File) -> io::Result<FileEntry>;
}

/// The file of a unit: its header, and its tensors, still with the ranks, in the order of the header.
pub(super) struct UnitFile {
    name: String,
    header: Vec<u8>,
    tensors: Vec<Pieces>,
}

impl UnitFile {
    /// The files of all units of `part`, of which ranks have `shares`, in model order, weights first; `folder` is for errors.
    pub(super) fn of_part(
        folder: &Path,
        part: &Part,
        shares: &[TrainedShare],
    ) -> Result<Vec<Self>, CheckpointError> {
        let mut files = Vec::new();
        for (unit, range) in part.units() {
            files.push(Self::weights(part, shares, unit, &range));
            files.push(Self::optimizer(folder, part, shares, unit, &range)?);
        }
        Ok(files)
    }

    fn weights(part: &Part, shares: &[TrainedShare], unit: Unit, range: &Range<usize>) -> Self {
        let value = |index| move |share: &TrainedShare| Some(share.params.iter().nth(index)?.value.clone());
        let trainable = part.params().trainable(range);
        let tensors =
            trainable.filter_map(|(index, _)| Pieces::gather(shares, index, value(index))).collect();
        let specs = specs(part.params(), range, Kind::Weights);
        // Without this entry the Hugging Face transformers library does not load a file.
        Self { name: file_name(unit, Kind::Weights), header: header(&specs, "format", "pt"), tensors }
    }

    fn optimizer(
        folder: &Path,
        part: &Part,
        shares: &[TrainedShare],
        unit: Unit,
        range: &Range<usize>,
    ) -> Result<Self, CheckpointError> {
        let name = file_name(unit, Kind::Optimizer);
        let moments = |share: &TrainedShare, index| share.optimizer.moments(index);
        let updates = |share, index| moments(share, index).map_or(0, |moments: Moments| moments.updates);
        let trainable = || part.params().trainable(range);
        let expected = trainable().next().map_or(0, |(index, _)| updates(&shares[0], index));
        for (index, parameter) in trainable() {
            for found in shares.iter().map(|share| updates(share, index)) {
                let what = format_args!("number of updates of `{}`", parameter.name);
                require(found == expected, &folder.join(&name), what, expected, found)?;
            }
        }
        let first = |index| Pieces::gather(shares, index, move |share| Some(moments(share, index)?.first));
        let second = |index| Pieces::gather(shares, index, move |share| Some(moments(share, index)?.second));
        let tensors = trainable().flat_map(|(index, _)| [first(index), second(index)]).flatten().collect();
        let specs = if expected == 0 { Vec::new() } else { specs(part.params(), range, Kind::Optimizer) };
        Ok(Self { name, header: header(&specs, UPDATES, &expected.to_string()), tensors })
    }
}

impl CheckpointFile for UnitFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        let values: usize = self.tensors.iter().map(Pieces::len).sum();
        (self.header.len() + values * size_of::<f32>()) as u64
    }

    fn write_to(&self, out: &mut File) -> io::Result<FileEntry> {
        let mut sha = Sha256::new();
        let mut put = |bytes: &[u8]| {
            sha.update(bytes);
            out.write_all(bytes)
        };
        put(&self.header)?;
        let mut chunk = Vec::with_capacity(CHUNK * size_of::<f32>());
        for tensor in &self.tensors {
            for values in tensor.join().chunks(CHUNK) {
                chunk.clear();
                chunk.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                put(&chunk)?;
            }
        }
        Ok(FileEntry {
            name: self.name.clone(),
            bytes: self.bytes(),
            sha256: hex(&sha.finalize()),
            tensors: self.tensors.len(),
        })
    }
}

/// Everything in front of the values, padded so that they start at a multiple of 8 bytes. One metadata entry only, as
/// the order of more is not fixed and equal state must give equal files.
fn header(specs: &[TensorSpec], key: &str, value: &str) -> Vec<u8> {
    let mut end = 0;
    let tensors = specs.iter().map(|spec| {
        let start = end;
        end += spec.bytes();
        let info = TensorInfo { dtype: Dtype::F32, shape: spec.shape.clone(), data_offsets: (start, end) };
        (spec.name.clone(), info)
    });
    let metadata = HashMap::from([(key.to_owned(), value.to_owned())]);
    let metadata = Metadata::new(Some(metadata), tensors.collect()).expect("the tensors follow each other");
    let mut json = serde_json::to_vec(&metadata).expect("a header is plain data");
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}
