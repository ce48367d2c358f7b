//! Which checkpoints there are.

use std::path::Path;

use super::layout::{file_names, step_folder, steps};
use super::{CheckpointError, Manifest};
use crate::config::StageUnits;

/// The steps, ascending, that `units` can be restored from: their manifest is valid and the units' files are in `dir`
/// with the sizes it says. Their contents are checked by [`restore`](super::restore()). Empty if `dir` does not exist.
///
/// # Errors
/// `dir` or a manifest in it cannot be read.
pub fn available(dir: &Path, units: &StageUnits) -> Result<Vec<u64>, CheckpointError> {
    let mut available = Vec::new();
    for manifest in manifests(dir)? {
        let manifest = manifest?;
        let folder = step_folder(dir, manifest.step);
        let has = |name: String| {
            let entry = manifest.files.iter().find(|entry| entry.name == name);
            entry.is_some_and(|entry| entry.is_in(&folder))
        };
        if file_names(units).all(has) {
            available.push(manifest.step);
        }
    }
    Ok(available)
}

/// The newest valid manifest in `dir`, whichever of its files are there.
///
/// # Errors
/// `dir` or a manifest in it cannot be read.
pub fn latest(dir: &Path) -> Result<Option<Manifest>, CheckpointError> {
    manifests(dir)?.last().transpose()
}

/// The valid manifests in `dir`, by ascending step.
pub(super) fn manifests(
    dir: &Path,
) -> Result<impl DoubleEndedIterator<Item = Result<Manifest, CheckpointError>>, CheckpointError> {
    Ok(steps(dir)?.into_iter().filter_map(|step| Manifest::read_valid(dir, step).transpose()))
}
