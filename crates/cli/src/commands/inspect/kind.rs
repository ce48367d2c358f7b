//! Telling files apart.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thinwire_link::MAGIC;

use crate::files::{self, FileError};

/// What a path seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A run or a checkpoint.
    Folder,
    /// A checkpoint's `manifest.json`, which stands for its folder.
    Manifest,
    Config,
    Frames,
    Safetensors,
    Npy,
    Metrics,
}

/// A path that is nothing known.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnknownKind {
    #[error("cannot open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Read(#[from] FileError),
    #[error("{} is neither a file nor a folder", path.display())]
    Special { path: PathBuf },
    #[error(
        "{} is nothing known: it does not begin as frames (TWFR), .npy (\\x93NUMPY) or safetensors (a length and a \
         JSON object) do, and its name is not manifest.json and does not end in .toml or .jsonl", path.display()
    )]
    Unknown { path: PathBuf },
}

/// Bytes that tell binary files apart.
const START: u64 = 9;

impl Kind {
    /// By the first bytes, for text files by the name.
    pub(super) fn of(path: &Path) -> Result<Self, UnknownKind> {
        let found = fs::metadata(path).map_err(|source| UnknownKind::Open { path: path.into(), source })?;
        if found.is_dir() {
            return Ok(Self::Folder);
        }
        if !found.is_file() {
            return Err(UnknownKind::Special { path: path.into() }); // reading a pipe or a device may never end
        }
        let (_, start) = files::read_start(path, START)?;
        Self::by_start(&start)
            .or_else(|| Self::by_name(path))
            .ok_or_else(|| UnknownKind::Unknown { path: path.into() })
    }

    fn by_start(start: &[u8]) -> Option<Self> {
        match start {
            _ if start.starts_with(&MAGIC) => Some(Self::Frames),
            _ if start.starts_with(b"\x93NUMPY") => Some(Self::Npy),
            // The length of a header that could be held in memory, then the header.
            [_, _, _, _, 0, 0, 0, 0, b'{'] => Some(Self::Safetensors),
            _ => None,
        }
    }

    fn by_name(path: &Path) -> Option<Self> {
        if path.file_name() == Some(OsStr::new("manifest.json")) {
            return Some(Self::Manifest);
        }
        match path.extension()?.to_str()? {
            "toml" => Some(Self::Config),
            "jsonl" => Some(Self::Metrics),
            // Their readers say what is wrong with the beginning.
            "safetensors" => Some(Self::Safetensors),
            "npy" => Some(Self::Npy),
            _ => None,
        }
    }
}
