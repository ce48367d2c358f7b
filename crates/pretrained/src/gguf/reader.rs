//! Bounded reading of the head of a file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::require;

/// Most bytes of metadata and tensor table together; a vocabulary of 262,144 tokens takes 6 MB.
const MAX_HEAD: u64 = 128 << 20;

/// Reads forward, and refuses every length that the rest of the file cannot have, before anything is allocated for it.
pub(super) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    position: u64,
    file_bytes: u64,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let file_bytes = file.metadata().map_err(Error::io("open", path))?.len();
        Ok(Self { path: path.into(), file: BufReader::new(file), position: 0, file_bytes })
    }

    /// Bytes read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.claim(N as u64, 1)?;
        self.file.read_exact(&mut bytes).map_err(Error::io("read", &self.path))?;
        self.position += N as u64;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length, then so many bytes of UTF-8.
    pub(super) fn string(&mut self) -> Result<String, Error> {
        let (start, len) = (self.position, self.u64()?);
        self.claim(len, 1)?;
        let mut bytes = vec![0; len as usize];
        self.file.read_exact(&mut bytes).map_err(Error::io("read", &self.path))?;
        self.position += len;
        String::from_utf8(bytes).map_err(|error| {
            let found = error.as_bytes().iter().take(16).copied().collect::<Vec<u8>>();
            Error::mismatch(&self.path, format_args!("string at byte {start}"), "UTF-8", found.escape_ascii())
        })
    }

    /// Checks that the file can still hold `count` items of at least `bytes` bytes each.
    pub(super) fn claim(&self, count: u64, bytes: u64) -> Result<(), Error> {
        let left = self.file_bytes.min(MAX_HEAD).saturating_sub(self.position);
        let valid = count.checked_mul(bytes).is_some_and(|needed| needed <= left);
        let what = format_args!("what follows byte {}", self.position);
        let expected = format_args!("{count} items of at least {bytes} bytes");
        let of = if self.file_bytes > MAX_HEAD { "that metadata may have" } else { "of the file" };
        let all = self.file_bytes.min(MAX_HEAD);
        require(valid, &self.path, what, expected, format_args!("{left} bytes left of the {all} {of}"))
    }
}
