//! Whether a file is still what the manifest says.

use std::fs::{self, File};
use std::path::Path;

use thinwire_data::hash::sha256_of;

use super::error::{CheckpointError, require};
use super::{FileEntry, Manifest};

impl FileEntry {
    /// Whether the file is in `folder` with its size.
    pub fn is_in(&self, folder: &Path) -> bool {
        fs::metadata(folder.join(&self.name)).is_ok_and(|file| file.is_file() && file.len() == self.bytes)
    }

    /// Reads the file in `folder` and compares size and SHA-256.
    ///
    /// # Errors
    /// It cannot be read or is another one.
    pub fn verify(&self, folder: &Path) -> Result<(), CheckpointError> {
        let path = &folder.join(&self.name);
        let found = fs::metadata(path).map_err(CheckpointError::io("open", path))?;
        require(found.is_file(), path, "kind", "a regular file", "another")?;
        require(found.len() == self.bytes, path, "size in bytes", self.bytes, found.len())?;
        let file = File::open(path).map_err(CheckpointError::io("open", path))?;
        let found = sha256_of(file).map_err(CheckpointError::io("read", path))?;
        require(found == self.sha256, path, "SHA-256", &self.sha256, &found)
    }
}

impl Manifest {
    /// All files: those of the units, then what the ends of boundaries remember.
    pub fn all_files(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().chain(&self.memory)
    }

    /// The manifest's files that are not in `folder` with their sizes.
    pub fn missing<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a FileEntry> {
        self.all_files().filter(move |file| !file.is_in(folder))
    }
}
