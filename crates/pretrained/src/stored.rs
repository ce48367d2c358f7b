//! A tensor in a file: where it is, and how its values come into memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::format::Format;

/// Bytes read at a time, less what is not a whole block.
const CHUNK: usize = 256 * 1024;

/// A range of a file that holds one tensor. The range lies in the file as it was when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    /// Of the first byte, from the start of the file.
    pub(crate) offset: u64,
    pub(crate) format: Format,
    /// Row-major.
    pub(crate) shape: Vec<usize>,
}

impl Stored {
    /// The values, row-major. Beside them, one chunk of the file is in memory.
    pub(crate) fn read(&self) -> Result<Vec<f32>, Error> {
        let mut file = File::open(&self.path).map_err(Error::io("open", &self.path))?;
        self.read_from(&mut file).map_err(Error::io("read", &self.path))
    }

    fn read_from(&self, file: &mut File) -> io::Result<Vec<f32>> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut values = vec![0.0; self.shape.iter().product()];
        let (block_len, block_bytes) = (self.format.block_len(), self.format.block_bytes());
        let blocks = CHUNK / block_bytes;
        let mut chunk = vec![0; blocks * block_bytes];
        for values in values.chunks_mut(blocks * block_len) {
            let bytes = &mut chunk[..values.len() / block_len * block_bytes];
            file.read_exact(bytes)?;
            self.format.decode(bytes, values);
        }
        Ok(values)
    }
}

/// The whole of a file that has to be small.
pub(crate) fn read_small(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut bytes = Vec::new();
    // One byte more than is allowed tells a file that is too long, whatever its metadata say.
    file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > most {
        return Err(Error::mismatch(path, "size in bytes", format_args!("at most {most}"), "more"));
    }
    Ok(bytes)
}
