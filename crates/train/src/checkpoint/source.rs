//! One safetensors file, on its way in.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use thinwire_data::hash::sha256_of;

use super::FileEntry;
use super::error::{CheckpointError, require};
use super::header::{self, Header};
use super::layout::Kind;
use super::tensors::{TensorSpec, specs};
use crate::model::ParamSet;

/// Values read and converted at a time.
const CHUNK: usize = 16 * 1024;

/// A file to be read, and what the manifest and the model say about it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// The parameters it is about.
    pub(super) range: Range<usize>,
    path: PathBuf,
    entry: FileEntry,
    specs: Vec<TensorSpec>,
}

impl Source {
    pub(super) fn new(
        path: PathBuf,
        entry: FileEntry,
        params: &ParamSet,
        range: Range<usize>,
        kind: Kind,
    ) -> Self {
        let specs = specs(params, &range, kind);
        Self { kind, range, path, entry, specs }
    }

    /// Checks the whole file. Its size comes first, so that no more is read than the model can have; then the hash, so
    /// that whatever happened to the file is told as such.
    pub(super) fn check(&self) -> Result<(), CheckpointError> {
        let FileEntry { bytes, sha256: digest, tensors, .. } = &self.entry;
        let found = fs::metadata(&self.path).map_err(CheckpointError::io("open", &self.path))?;
        self.require(found.is_file(), "kind", "a regular file", "another")?;
        self.require(found.len() == *bytes, "size in bytes", bytes, found.len())?;
        let values: usize = self.specs.iter().map(TensorSpec::bytes).sum();
        let most = 8 + header::MAX_BYTES + values as u64;
        self.require(*bytes <= most, "size in bytes", format_args!("at most {most}"), bytes)?;
        let found = sha256_of(self.open()?).map_err(CheckpointError::io("read", &self.path))?;
        self.require(found == *digest, "SHA-256", digest, &found)?;
        let header = Header::read(self.open()?, &self.path, self.kind, &self.specs)?;
        self.require(header.file_bytes == *bytes, "size in bytes", header.file_bytes, bytes)?;
        self.require(header.order.len() == *tensors, "number of tensors", tensors, header.order.len())
    }

    /// The number of updates, and the values of the tensors in the order of the specs.
    pub(super) fn read(&self) -> Result<(usize, Vec<Vec<f32>>), CheckpointError> {
        let mut file = self.open()?;
        let Header { order, updates, .. } = Header::read(&mut file, &self.path, self.kind, &self.specs)?;
        let mut tensors = vec![Vec::new(); order.len()];
        for place in order {
            let len = self.specs[place].bytes() / size_of::<f32>();
            tensors[place] = read_values(&mut file, len).map_err(CheckpointError::io("read", &self.path))?;
        }
        Ok((updates, tensors))
    }

    /// The place among the specs of the tensor `name`.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }

    /// The row-major shape of the tensor at `place`.
    pub(super) fn shape(&self, place: usize) -> &[usize] {
        &self.specs[place].shape
    }

    /// The values of the tensor at `place` alone.
    pub(super) fn read_one(&self, place: usize) -> Result<Vec<f32>, CheckpointError> {
        let mut file = self.open()?;
        let Header { order, .. } = Header::read(&mut file, &self.path, self.kind, &self.specs)?;
        let in_front = order.into_iter().take_while(|&other| other != place);
        let in_front: usize = in_front.map(|other| self.specs[other].bytes()).sum();
        let values = file
            .stream_position()
            .and_then(|data| file.seek(SeekFrom::Start(data + in_front as u64)))
            .and_then(|_| read_values(&mut file, self.specs[place].bytes() / size_of::<f32>()));
        values.map_err(CheckpointError::io("read", &self.path))
    }

    fn open(&self) -> Result<File, CheckpointError> {
        File::open(&self.path).map_err(CheckpointError::io("open", &self.path))
    }

    fn require(
        &self,
        valid: bool,
        what: &str,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Result<(), CheckpointError> {
        require(valid, &self.path, what, expected, found)
    }
}

fn read_values(file: &mut File, len: usize) -> io::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(len);
    let mut chunk = vec![0; CHUNK * size_of::<f32>()];
    while values.len() < len {
        let bytes = &mut chunk[..CHUNK.min(len - values.len()) * size_of::<f32>()];
        file.read_exact(bytes)?;
        values.extend(bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)));
    }
    Ok(values)
}
