//! Large files that are fetched, not committed.

use std::env;
use std::path::{Path, PathBuf};

/// The asset `name`, from the folder that `THINWIRE_ASSETS` names or from `target/assets` of the workspace.
///
/// Without it the test is skipped, which is printed; where `CI` is set, it fails.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let standard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/assets");
    let path = env::var_os("THINWIRE_ASSETS").map_or(standard, PathBuf::from).join(name);
    if path.is_file() {
        return Some(path);
    }
    assert!(env::var_os("CI").is_none(), "{} is missing: run `cargo xtask assets`", path.display());
    eprintln!("SKIPPED: {} is missing; `cargo xtask assets` fetches it", path.display());
    None
}
