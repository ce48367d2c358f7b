//! Tokens in order, in memory or in a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::DataError;

/// Bytes of an entry.
pub(crate) const ENTRY: usize = size_of::<u32>();

/// Entries read at once by a scan.
const CHUNK: u64 = 1 << 18;

/// The tokens of a data set.
#[derive(Debug)]
pub(crate) enum Entries {
    /// All of them.
    Memory(Vec<u32>),
    /// In a file, from its beginning.
    File {
        /// The file's name, for errors.
        path: PathBuf,
        /// Open for reading.
        file: File,
        /// How many there are.
        count: u64,
    },
}

impl Entries {
    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(entries) => entries.len() as u64,
            Self::File { count, .. } => *count,
        }
    }

    /// `count` entries from `start`.
    ///
    /// # Panics
    /// In memory, when there are not so many.
    pub(crate) fn read(&self, start: u64, count: usize) -> Result<Vec<u32>, DataError> {
        match self {
            Self::Memory(entries) => Ok(entries[start as usize..][..count].to_vec()),
            Self::File { path, file, .. } => {
                read_at(file, start, count).map_err(|source| DataError::Cache { path: path.clone(), source })
            }
        }
    }

    /// All entries in order, in pieces.
    pub(crate) fn scan(&self, mut visit: impl FnMut(&[u32])) -> Result<(), DataError> {
        match self {
            Self::Memory(entries) => visit(entries),
            Self::File { count, .. } => {
                for start in (0..*count).step_by(CHUNK as usize) {
                    visit(&self.read(start, CHUNK.min(count - start) as usize)?);
                }
            }
        }
        Ok(())
    }
}

fn read_at(mut file: &File, start: u64, count: usize) -> io::Result<Vec<u32>> {
    file.seek(SeekFrom::Start(start * ENTRY as u64))?;
    let mut bytes = vec![0; count * ENTRY];
    file.read_exact(&mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|&entry| u32::from_le_bytes(entry)).collect())
}
