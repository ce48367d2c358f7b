//! What one end of a boundary remembers, as a file: of each sample, in ascending order, its number and the number of bytes
//! that are kept of it, both as little-endian `u64`, and then these bytes.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thinwire_codec::{MemoryError, SampleMemory};
use thinwire_data::hash::hex;

use super::error::{CheckpointError, require};
use super::layout::{memory_name, step_folder};
use super::unit_file::CheckpointFile;
use super::{FileEntry, Manifest};
use crate::memory::{BoundaryMemory, End, SharedMemory};

/// Bytes in front of those of a sample.
const HEADER: usize = 16;

/// A file to be written.
pub(super) struct MemoryFile {
    name: String,
    samples: Vec<u64>,
    memory: SharedMemory,
}

impl MemoryFile {
    pub(super) fn of(end: &BoundaryMemory) -> Self {
        let memory = end.memory.clone();
        Self { name: memory_name(end.before, end.end, end.keep), samples: memory.samples(), memory }
    }
}

impl CheckpointFile for MemoryFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        (self.samples.len() * HEADER) as u64 + self.memory.bytes()
    }

    fn write_to(&self, out: &mut File) -> io::Result<FileEntry> {
        let (mut memory, mut record, mut kept) = (self.memory.clone(), Vec::new(), Vec::new());
        let (mut sha, mut bytes) = (Sha256::new(), 0);
        for sample in &self.samples {
            memory.read(*sample, &mut kept).map_err(io::Error::other)?;
            record.clear();
            record.extend(sample.to_le_bytes());
            record.extend((kept.len() as u64).to_le_bytes());
            record.extend_from_slice(&kept);
            sha.update(&record);
            out.write_all(&record)?;
            bytes += record.len() as u64;
        }
        let (name, sha256) = (self.name.clone(), hex(&sha.finalize()));
        Ok(FileEntry { name, bytes, sha256, tensors: self.samples.len() })
    }
}

impl Manifest {
    /// The file of what `end` is to remember. `None` if the checkpoint has not what both ends of that boundary remembered in
    /// the same number format: then both must begin anew. As all stages have the same manifest, both do.
    fn memory(&self, end: &BoundaryMemory) -> Option<&FileEntry> {
        let file = |side| {
            let name = memory_name(end.before, side, end.keep);
            self.memory.iter().find(|file| file.name == name)
        };
        let [sent, received] = End::ALL.map(file);
        sent.zip(received).map(|(sent, received)| match end.end {
            End::Sent => sent,
            End::Received => received,
        })
    }
}

/// Whether what `ends` are to remember after step `step` is in `dir`, or is nothing.
///
/// # Errors
/// The manifest cannot be read.
pub fn has_memories(dir: &Path, step: u64, ends: &[BoundaryMemory]) -> Result<bool, CheckpointError> {
    let (manifest, folder) = (Manifest::read(dir, step)?, step_folder(dir, step));
    Ok(ends.iter().filter_map(|end| manifest.memory(end)).all(|file| file.is_in(&folder)))
}

/// Files of memories that have been checked.
#[derive(Debug)]
pub struct SavedMemories(Vec<(BoundaryMemory, PathBuf)>);

impl SavedMemories {
    /// Finds and checks, in the checkpoint of step `step` in `dir`, the files of what `ends` are to remember. Those that it
    /// knows nothing of are given beside: they begin anew, and so do the ends opposite.
    ///
    /// # Errors
    /// A file is not what the manifest says, or not what its end could have written.
    pub fn check(
        dir: &Path,
        step: u64,
        ends: &[BoundaryMemory],
    ) -> Result<(Self, Vec<BoundaryMemory>), CheckpointError> {
        let (manifest, folder) = (Manifest::read(dir, step)?, step_folder(dir, step));
        let (mut saved, mut unknown) = (Vec::new(), Vec::new());
        for end in ends {
            match manifest.memory(end) {
                None => unknown.push(end.clone()),
                Some(file) => {
                    file.verify(&folder)?;
                    let path = folder.join(&file.name);
                    let samples = read(&path, end, |_, _| Ok(()))?;
                    require(samples == file.tensors, &path, "number of samples", file.tensors, samples)?;
                    saved.push((end.clone(), path));
                }
            }
        }
        Ok((Self(saved), unknown))
    }

    /// Lets the ends, which have not remembered anything yet, remember what is in the files. Samples that the run has not any
    /// more, as another held-out text may have fewer, are left out.
    ///
    /// # Errors
    /// A file that was just checked cannot be read a second time; a memory has no room.
    pub fn restore(self) -> Result<(), CheckpointError> {
        for (end, path) in self.0 {
            let mut memory = end.memory.clone();
            read(
                &path,
                &end,
                |sample, kept| {
                    if sample < end.samples { memory.write(sample, kept) } else { Ok(()) }
                },
            )?;
        }
        Ok(())
    }
}

/// Gives every sample in the file at `path` to `take`; their number. Sizes are checked before there is memory for them.
fn read(
    path: &Path,
    end: &BoundaryMemory,
    mut take: impl FnMut(u64, &mut Vec<u8>) -> Result<(), MemoryError>,
) -> Result<usize, CheckpointError> {
    let io = |source| CheckpointError::Io { action: "read", path: path.into(), source };
    let file = File::open(path).map_err(io)?;
    let mut left = file.metadata().map_err(io)?.len();
    let mut file = BufReader::new(file);
    let (mut kept, mut samples, mut next) = (Vec::new(), 0, 0);
    while left > 0 {
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(io)?;
        let [sample, bytes] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| header[at + i])));
        require(sample >= next, path, "number of a sample", format_args!("at least {next}"), sample)?;
        let most = end.token_bytes.saturating_mul(end.tokens);
        let whole = bytes > 0 && bytes <= most && bytes.is_multiple_of(end.token_bytes);
        let what = format_args!("bytes of sample {sample}");
        let expected = format_args!("a multiple of {} up to {most}", end.token_bytes);
        require(whole, path, what, expected, bytes)?;
        kept.resize(bytes as usize, 0);
        file.read_exact(&mut kept).map_err(io)?;
        take(sample, &mut kept).map_err(|source| CheckpointError::Memory { path: path.into(), source })?;
        (samples, next) = (samples + 1, sample.saturating_add(1));
        left = left.saturating_sub(HEADER as u64 + bytes);
    }
    Ok(samples)
}
