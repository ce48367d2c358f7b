use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// This rank's file while it has a name.
#[derive(Debug)]
pub(super) struct Named {
    path: PathBuf,
}

impl Named {
    /// Gives a file its name once it is whole, so that nobody finds half of one. A file of that name which nobody holds a lock on is
    /// what an interrupted start has left, and is removed. Nothing if the name is in use.
    pub(super) fn publish(temporary: &Path, path: &Path) -> io::Result<Option<Self>> {
        loop {
            match fs::hard_link(temporary, path) {
                Ok(()) => return Ok(Some(Self { path: path.to_owned() })),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match File::open(path) {
                Ok(file) if is_locked(&file)? => return Ok(None),
                Ok(_) => remove(path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // Where it cannot be removed, the next start replaces it.
        let _ = remove(&self.path);
    }
}

/// A new file of zeros for this user alone, locked. The zeros are written: a mapped page for which there is no memory left would end
/// the process.
pub(super) fn create(path: &Path, bytes: u64) -> io::Result<File> {
    remove(path)?;
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.lock()?;
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    Ok(file)
}

/// Whether its writer lives.
pub(super) fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
