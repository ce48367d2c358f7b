//! Files that are either whole and on the disk, or not there.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::Builder;

/// Writes `path` through `fill`: under a temporary name of its own, flushed to the disk, then renamed.
///
/// An earlier file of that name is replaced at once; when anything fails it stays and the temporary file is removed.
/// The name itself is on the disk after [`sync_folder`].
pub(super) fn write_file<T>(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut temporary = Builder::new();
    temporary.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask, as any new file
    let mut out = temporary.tempfile_in(folder)?;
    let value = fill(out.as_file_mut())?;
    out.as_file().sync_all()?;
    out.persist(path)?;
    Ok(value)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?; // elsewhere a folder cannot be opened, and the system sees to it
    }
    Ok(())
}

/// Creates a folder and those above it, durably.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// The result of removing something that another stage may have removed already.
pub(super) fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
