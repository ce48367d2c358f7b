//! Removing: old checkpoints, and what never became one.

use std::fs;
use std::ops::RangeBounds;
use std::path::Path;

use super::CheckpointError;
use super::durable::removed;
use super::layout::{manifest_path, step_folder, steps};
use super::list::manifests;
use super::write::retract;

/// Removes the oldest checkpoints in `dir` beyond the newest `keep`; 0 keeps all. Gives the steps removed. Several
/// stages may prune one folder at the same time.
///
/// # Errors
/// A folder cannot be read or removed.
pub fn prune(dir: &Path, keep: usize) -> Result<Vec<u64>, CheckpointError> {
    if keep == 0 {
        return Ok(Vec::new());
    }
    let mut old = Vec::new();
    for manifest in manifests(dir)?.rev().skip(keep) {
        old.push(manifest?.step);
    }
    old.reverse();
    old.iter().try_for_each(|&step| remove(dir, step))?;
    Ok(old)
}

/// Removes the folders in `dir`, of the steps in `range`, that have no manifest: what a killed run left of a
/// checkpoint. Gives the steps removed.
///
/// A checkpoint that is being written has no manifest either. So call it where no stage that shares `dir` can be
/// between [`write_units`](super::write_units) and [`commit`](super::commit()) of a step in `range`: with `..` before
/// the first step of a run, later with the steps in front of the newest checkpoint.
///
/// # Errors
/// A folder cannot be read or removed.
pub fn clean(dir: &Path, range: impl RangeBounds<u64>) -> Result<Vec<u64>, CheckpointError> {
    let mut removed = Vec::new();
    for step in steps(dir)?.into_iter().filter(|step| range.contains(step)) {
        let path = manifest_path(dir, step);
        if !fs::exists(&path).map_err(CheckpointError::io("look for", &path))? {
            remove(dir, step)?;
            removed.push(step);
        }
    }
    Ok(removed)
}

/// Removes the checkpoint of step `step` from `dir`, the manifest first, so that what is left when the process is
/// killed is never taken for one. One that is not there is fine.
///
/// # Errors
/// A file or the folder cannot be removed.
pub fn remove(dir: &Path, step: u64) -> Result<(), CheckpointError> {
    retract(dir, step)?;
    let folder = step_folder(dir, step);
    removed(fs::remove_dir_all(&folder)).map_err(CheckpointError::io("remove", &folder))
}
