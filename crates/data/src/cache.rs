//! Tokenized data on disk: made once, under a name that all it depends on goes into, and checked when it is opened.
//!
//! A file is its entries (u32, little endian), the trailer (JSON), the trailer's length (u32) and [`MAGIC`].

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::hash::{hex, sha256_of};
use crate::store::{ENTRY, Entries};
use crate::{Damage, DataError};

const MAGIC: &[u8; 8] = b"TWTOKEN1";

/// A trailer holds a few names; one that claims more is none.
const LONGEST_TRAILER: u32 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Trailer {
    /// What the file is the tokens of.
    key: String,
    entries: u64,
    /// SHA-256 of the entries.
    sha256: String,
    damage: Damage,
}

/// Takes entries in order.
pub(crate) type Sink<'a> = dyn FnMut(&[u32]) -> io::Result<()> + 'a;

/// The data whose key is `key` from `folder`; if it is not there, or not whole, `build` makes it. Of several processes
/// that want it, one builds, and the others wait.
pub(crate) fn open(
    folder: &Path,
    key: &str,
    build: impl FnOnce(&mut Sink<'_>) -> Result<Damage, DataError>,
) -> Result<(Entries, Damage), DataError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| DataError::Cache { path, source }
    };
    let path = folder.join(format!("{}.tokens", &key[..32]));
    if let Some(found) = read(&path, key).map_err(at(&path))? {
        return Ok(found);
    }
    fs::create_dir_all(folder).map_err(at(folder))?;
    let _lock = lock(folder).map_err(at(folder))?;
    if let Some(found) = read(&path, key).map_err(at(&path))? {
        return Ok(found);
    }
    let mut file = NamedTempFile::new_in(folder).map_err(at(folder))?;
    write(&mut file, &path, key, build)?;
    file.persist(&path).map_err(|error| DataError::Cache { path: path.clone(), source: error.error })?;
    let written = read(&path, key).map_err(at(&path))?;
    let changed = || io::Error::new(io::ErrorKind::InvalidData, "what was written does not read back");
    written.ok_or_else(|| DataError::Cache { path, source: changed() })
}

/// Held until the file is dropped. Where a file system has no locks, two processes may do the same work.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::options().append(true).create(true).open(folder.join(".lock"))?;
    match file.lock() {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

fn write(
    file: &mut NamedTempFile,
    path: &Path,
    key: &str,
    build: impl FnOnce(&mut Sink<'_>) -> Result<Damage, DataError>,
) -> Result<(), DataError> {
    let mut out = BufWriter::new(file.as_file_mut());
    let mut hash = Sha256::new();
    let mut entries = 0;
    let damage = build(&mut |piece| {
        entries += piece.len() as u64;
        for chunk in piece.chunks(1 << 14) {
            let bytes: Vec<u8> = chunk.iter().flat_map(|entry| entry.to_le_bytes()).collect();
            hash.update(&bytes);
            out.write_all(&bytes)?;
        }
        Ok(())
    })?;
    let trailer = Trailer { key: key.to_owned(), entries, sha256: hex(&hash.finalize()), damage };
    let trailer = serde_json::to_vec(&trailer).expect("texts and numbers are JSON");
    let mut finish = || {
        out.write_all(&trailer)?;
        out.write_all(&(trailer.len() as u32).to_le_bytes())?;
        out.write_all(MAGIC)?;
        out.flush()?;
        out.get_ref().sync_all()
    };
    finish().map_err(|source| DataError::Cache { path: path.into(), source })
}

/// `None` if there is no such file, or it is not what it should be, to the last bit.
fn read(path: &Path, key: &str) -> io::Result<Option<(Entries, Damage)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let Some((trailer, behind)) = read_trailer(&mut file)? else { return Ok(None) };
    let bytes = trailer.entries.checked_mul(ENTRY as u64);
    if trailer.key != key || bytes != Some(behind) || trailer.sha256 != sha256_of_first(&mut file, behind)? {
        return Ok(None);
    }
    let entries = Entries::File { path: PathBuf::from(path), file, count: trailer.entries };
    Ok(Some((entries, trailer.damage)))
}

/// The trailer and how many bytes lie in front of it.
fn read_trailer(file: &mut File) -> io::Result<Option<(Trailer, u64)>> {
    let length = file.metadata()?.len();
    let mut end = [0; 12];
    let Some(end_at) = length.checked_sub(end.len() as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(end_at))?;
    file.read_exact(&mut end)?;
    let (size, magic) = end.split_at(4);
    let size = u32::from_le_bytes(size.try_into().expect("4 bytes"));
    let Some(behind) = end_at.checked_sub(size.into()) else { return Ok(None) };
    if magic != MAGIC || size > LONGEST_TRAILER {
        return Ok(None);
    }
    let mut trailer = vec![0; size as usize];
    file.seek(SeekFrom::Start(behind))?;
    file.read_exact(&mut trailer)?;
    Ok(serde_json::from_slice(&trailer).ok().map(|trailer| (trailer, behind)))
}

fn sha256_of_first(file: &mut File, bytes: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    sha256_of(&mut file.take(bytes))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn what_is_made_once_is_read_and_what_is_damaged_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let made = Cell::new(0);
        let open = |key: &str| {
            let build = |sink: &mut Sink<'_>| {
                made.set(made.get() + 1);
                sink(&[1, 2]).unwrap();
                sink(&[3 << 20]).unwrap();
                Ok(Damage { records: 9, damaged: 1, named: vec!["a:1: b".to_owned()] })
            };
            let (entries, damage) = open(folder.path(), key, build).unwrap();
            assert_eq!((entries.read(0, 3).unwrap(), damage.records), (vec![1, 2, 3 << 20], 9));
            made.get()
        };
        assert_eq!([open(KEY), open(KEY)], [1, 1]);
        let other = KEY.replace("89", "99");
        assert_eq!([open(&other), open(KEY)], [2, 2]);

        let path = folder.path().join(format!("{}.tokens", &KEY[..32]));
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).unwrap();
            let found = read(&path, KEY).unwrap();
            // A bit of the damage's text may differ.
            assert!(found.is_none_or(|(entries, _)| entries.read(0, 3).unwrap() == [1, 2, 3 << 20]), "{bit}");
        }
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(read(&path, KEY).unwrap().is_none(), "{end}");
        }
        let before = made.get();
        assert_eq!(open(KEY), before + 1);
        assert_eq!(fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let result = open(folder.path(), KEY, |sink| {
            sink(&[1]).unwrap();
            Err(DataError::NoRecords { path })
        });
        assert!(matches!(result, Err(DataError::NoRecords { .. })));
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
    }
}
