//! Where a folder is that may not exist yet.

use std::fs;
use std::path::{self, Path, PathBuf};

/// Whether `path` is `folder`, which exists, or would be somewhere in it, whatever links lead there.
pub(super) fn lies_in(path: &Path, folder: &Path) -> bool {
    let folder = fs::canonicalize(folder);
    folder.is_ok_and(|folder| resolve(path).is_some_and(|path| path.starts_with(folder)))
}

/// The absolute path, without links as far as it exists.
fn resolve(path: &Path) -> Option<PathBuf> {
    let path = path::absolute(path).ok()?;
    path.ancestors().find_map(|known| {
        let rest = path.strip_prefix(known).ok()?;
        Some(fs::canonicalize(known).ok()?.join(rest))
    })
}
