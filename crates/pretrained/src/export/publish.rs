//! How a finished folder gets its name.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use tempfile::TempDir;

use super::adapter::{ADAPTER_CONFIG, ADAPTER_WEIGHTS};
use crate::Error;
use crate::error::require;
use crate::folder::{CONFIG, INDEX};
use crate::tokenizer::{CHAT_TEMPLATE, GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG};

/// Lets `write` fill a temporary folder beside `folder`, and gives it that name when all of it is on the disk; after an
/// error nothing is left. With `replace`, a folder that holds exported files and nothing else may be there already.
pub(super) fn write_folder(
    folder: &Path,
    replace: bool,
    write: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let earlier = earlier(folder, replace)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    let prefix = format!(".{name}.");
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777)); // less the umask, as any new folder
    let temporary = temporary.tempdir_in(parent).map_err(Error::io("create a folder in", parent))?;
    write(temporary.path())?;
    publish(temporary, folder, parent, earlier)
}

/// What is under the name already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// Nothing, or an empty folder.
    Nothing,
    /// A model that may be replaced.
    Model,
}

/// Looks at `folder`, which must be free, or with `replace` hold nothing but a model.
fn earlier(folder: &Path, replace: bool) -> Result<Earlier, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Earlier::Nothing),
        Err(source) => return Err(Error::io("list", folder)(source)),
    };
    let mut earlier = Earlier::Nothing;
    for entry in entries {
        require(replace, folder, "folder to write", "none, or an empty one", "files")?;
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().map_err(Error::io("open", &entry.path()))?.is_file();
        let expected = "nothing but the files of an exported model";
        require(is_file && is_ours(&name), folder, "folder to replace", expected, format_args!("`{name}`"))?;
        earlier = Earlier::Model;
    }
    Ok(earlier)
}

/// Whether an export gives a file this name.
fn is_ours(name: &str) -> bool {
    let model = [CONFIG, INDEX, TOKENIZER, TOKENIZER_CONFIG, CHAT_TEMPLATE, GENERATION_CONFIG];
    let others = [&model[..], &[ADAPTER_CONFIG, ADAPTER_WEIGHTS]].concat();
    others.contains(&name) || (name.starts_with("model") && name.ends_with(".safetensors"))
}

/// Gives the finished folder `temporary` the name `folder`, in `parent`.
fn publish(temporary: TempDir, folder: &Path, parent: &Path, earlier: Earlier) -> Result<(), Error> {
    sync_folder(temporary.path())?;
    match earlier {
        Earlier::Nothing => fs::rename(temporary.path(), folder).map_err(Error::io("create", folder))?,
        Earlier::Model => exchange(temporary.path(), folder, parent)?,
    }
    // Nothing of that name is left to remove.
    let _ = temporary.keep();
    sync_folder(parent)
}

/// Puts `new` in the place of `folder`, which is removed. A folder with files in it cannot be renamed over, so for a
/// moment there is none.
fn exchange(new: &Path, folder: &Path, parent: &Path) -> Result<(), Error> {
    let attic = tempfile::Builder::new().prefix(".").suffix(".tmp").tempdir_in(parent);
    let attic = attic.map_err(Error::io("create a folder in", parent))?;
    let old = attic.path().join("old");
    fs::rename(folder, &old).map_err(Error::io("rename", folder))?;
    let renamed = fs::rename(new, folder);
    if renamed.is_err() && fs::rename(&old, folder).is_err() {
        // Better a hidden folder than none.
        let _ = attic.keep();
    }
    renamed.map_err(Error::io("create", folder))
}

/// Makes the names in a folder durable. Elsewhere a folder cannot be opened, and the system sees to it.
fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path).and_then(|folder| folder.sync_all()).map_err(Error::io("sync", path))?;
    }
    Ok(())
}
