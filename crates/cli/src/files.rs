//! Whole files in, whole files out.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {}", path.display())]
pub(crate) struct FileError {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|source| FileError { verb: "read", path: path.into(), source })
}

/// The file's length, and its first bytes, at most `most` of them.
pub(crate) fn read_start(path: &Path, most: u64) -> Result<(u64, Vec<u8>), FileError> {
    let read = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = Vec::new();
        file.take(most).read_to_end(&mut start)?;
        Ok((length, start))
    };
    read().map_err(|source| FileError { verb: "read", path: path.into(), source })
}

/// Writes the file so that `path` holds all of `contents`, or what it held before.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let written = match fs::canonicalize(path) {
        // A device or a pipe has no earlier contents to keep, and must not be replaced by a file.
        Ok(target) if !target.is_file() => fs::write(target, contents),
        Ok(target) => replace(&target, contents),
        Err(_) => replace(path, contents),
    };
    written.map_err(|source| FileError { verb: "write", path: path.into(), source })
}

/// Writes to a file beside `path`, and renames it once it is complete.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut partial = OsString::from(path);
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let mut file = File::create_new(&partial)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        let _ = fs::remove_file(&partial); // the first error is the one to report
    })
}
