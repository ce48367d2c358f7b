//! Which files a setting names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::DataError;
use crate::hash::{sha256_hex, sha256_of};

/// What is read of a folder.
const EXTENSIONS: [&str; 5] = ["txt", "jsonl", "json", "ndjson", "parquet"];

/// The files that `paths` name, in the order in which they are read: a file as it is, a folder's files with a known
/// ending by name, a pattern's matches by name.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::new();
    for path in paths {
        let found = if path.is_dir() {
            in_folder(path)?
        } else if !path.exists() && path.to_string_lossy().contains(['*', '?', '[']) {
            matches(path)?
        } else {
            vec![path.clone()]
        };
        if found.is_empty() {
            return Err(DataError::NoFiles { path: path.clone(), extensions: EXTENSIONS.join(", ") });
        }
        files.extend(found);
    }
    Ok(files)
}

/// Whether there is something to read at all `paths`, as a run would.
///
/// # Errors
/// A file that cannot be opened, a folder or pattern that names none.
pub fn require_files(paths: &[PathBuf]) -> Result<(), DataError> {
    for path in expand(paths)? {
        File::open(&path).map_err(|source| DataError::Read { path, source })?;
    }
    Ok(())
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let unreadable = |source| DataError::Read { path: folder.into(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let known = path.extension().is_some_and(|end| EXTENSIONS.iter().any(|known| end == *known));
        if known && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn matches(pattern: &Path) -> Result<Vec<PathBuf>, DataError> {
    let found = glob::glob(&pattern.to_string_lossy())
        .map_err(|source| DataError::Pattern { path: pattern.into(), source })?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| DataError::Read {
            path: error.path().into(),
            source: io::Error::from(error.error().kind()),
        })?;
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Bytes of all files.
pub(crate) fn total_bytes(files: &[PathBuf]) -> Result<u64, DataError> {
    files.iter().try_fold(0u64, |sum, path| {
        let file = fs::metadata(path).map_err(|source| DataError::Read { path: path.into(), source })?;
        Ok(sum.saturating_add(file.len()))
    })
}

/// SHA-256, in hexadecimal: of one file its contents', of several that of theirs in a row.
pub(crate) fn content_sha256(files: &[PathBuf]) -> Result<String, DataError> {
    let hashes = files
        .iter()
        .map(|path| {
            File::open(path)
                .and_then(|mut file| sha256_of(&mut file))
                .map_err(|source| DataError::Read { path: path.into(), source })
        })
        .collect::<Result<Vec<_>, _>>()?;
    match &hashes[..] {
        [hash] => Ok(hash.clone()),
        hashes => Ok(sha256_hex(hashes.concat().as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_patterns() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.txt", "README.md", ".hidden", "c.parquet"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let names = |path: &str| {
            let files = expand(&[folder.path().join(path)]);
            files.map(|files| {
                let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
                files.iter().map(name).collect::<Vec<_>>()
            })
        };
        assert_eq!(names("").unwrap(), ["a.txt", "b.jsonl", "c.parquet"]);
        assert_eq!(names("README.md").unwrap(), ["README.md"]);
        assert_eq!(names("[ab].*").unwrap(), ["a.txt", "b.jsonl"]);
        for path in ["*.csv", "[z-"] {
            let error = names(path).unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
    }

    #[test]
    fn the_order_and_the_borders_of_files_count() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, b, ab, empty) = (write("a", "a"), write("b", "b"), write("ab", "ab"), write("e", ""));
        let hash = |files: &[&PathBuf]| {
            content_sha256(&files.iter().map(|path| (*path).clone()).collect::<Vec<_>>()).unwrap()
        };
        // FIPS 180-2, appendix B.1.
        let abc = write("abc", "abc");
        assert_eq!(hash(&[&abc]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let hashes = [hash(&[&a, &b]), hash(&[&b, &a]), hash(&[&ab]), hash(&[&ab, &empty])];
        for (at, one) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(one));
        }
    }
}
