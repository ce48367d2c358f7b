//! Files the tests start from.

use std::env;
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use thinwire_pretrained::{Error, Pretrained};

/// Names of the small models: a folder and a `.gguf` file each.
pub(crate) const SMALL: [&str; 5] = ["gpt2", "llama3", "smollm", "qwen2", "qwen3"];

/// A committed fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn read_fixture(name: &str) -> Vec<u8> {
    fs::read(fixture(name)).unwrap()
}

/// A copy of the folder of a small model, to be damaged.
pub(crate) fn copy(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(&format!("models/{name}"))).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// An error and its causes, as a user sees them.
pub(crate) fn chain(error: &Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        parts.push(cause.to_string());
        source = cause.source();
    }
    parts.join(": ")
}

/// What opening says, with everything read that can be.
pub(crate) fn open_and_read(path: &Path) -> Result<(), Error> {
    let model = Pretrained::open(path)?;
    for tensor in model.config().tensors() {
        model.read(&tensor.name, &tensor.shape)?;
    }
    Ok(())
}

/// A file fetched by `cargo xtask assets`, from the folder that `THINWIRE_ASSETS` names or from `target/assets`.
///
/// Without it the test is skipped, which is printed; where `CI` is set, it fails.
pub(crate) fn asset(name: &str) -> Option<PathBuf> {
    let standard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/assets");
    let path = env::var_os("THINWIRE_ASSETS").map_or(standard, PathBuf::from).join(name);
    if path.is_file() {
        return Some(path);
    }
    assert!(env::var_os("CI").is_none(), "{} is missing: run `cargo xtask assets`", path.display());
    eprintln!("SKIPPED: {} is missing; `cargo xtask assets` fetches it", path.display());
    None
}
