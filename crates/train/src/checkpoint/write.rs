//! Writing: each stage its units' files, then the manifest.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::durable::{create_folder, removed, sync_folder, write_file};
use super::error::CheckpointError;
use super::layout::{manifest_path, step_folder};
use super::memory_file::MemoryFile;
use super::pieces::TrainedShare;
use super::unit_file::{CheckpointFile, UnitFile};
use super::{FileEntry, Manifest};
use crate::memory::BoundaryMemory;
use crate::model::Part;
use crate::optim::AdamW;

/// Writes the files of the units that `part` has, and of what `ends` remember, into the folder of step `step` in `dir`;
/// gives their entries, those of the units first and in model order. Several stages may write into one folder at the same
/// time.
///
/// A manifest that an earlier attempt left there is removed first. One tensor at a time is copied to the host.
///
/// # Errors
/// A file cannot be written; those written so far are removed. Parameters of one unit differ in their number of
/// updates.
pub fn write_units(
    dir: &Path,
    step: u64,
    part: &Part,
    optimizer: &AdamW,
    ends: &[BoundaryMemory],
) -> Result<Vec<FileEntry>, CheckpointError> {
    write_shares(dir, step, part, &[TrainedShare::of((part, optimizer))], ends)
}

/// As [`write_units`], of ranks that each have a share of every unit, in their order; `part` is one of theirs. The files are those
/// of whole units.
///
/// # Errors
/// As [`write_units`].
pub fn write_shares(
    dir: &Path,
    step: u64,
    part: &Part,
    shares: &[TrainedShare],
    ends: &[BoundaryMemory],
) -> Result<Vec<FileEntry>, CheckpointError> {
    let folder = step_folder(dir, step);
    let units = UnitFile::of_part(&folder, part, shares)?.into_iter().map(boxed);
    let files: Vec<_> = units.chain(ends.iter().map(MemoryFile::of).map(boxed)).collect();
    create_folder(&folder).map_err(CheckpointError::io("create", &folder))?;
    retract(dir, step)?;
    write_files(&folder, &files).inspect_err(|_| {
        for file in &files {
            // The error that is on its way says more than one from here could.
            let _ = fs::remove_file(folder.join(file.name()));
        }
    })
}

fn boxed(file: impl CheckpointFile + 'static) -> Box<dyn CheckpointFile> {
    Box::new(file)
}

fn write_files(folder: &Path, files: &[Box<dyn CheckpointFile>]) -> Result<Vec<FileEntry>, CheckpointError> {
    let needed = files.iter().map(|file| file.bytes()).sum();
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CheckpointError::Write { path, needed, source }
    };
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        let path = folder.join(file.name());
        entries.push(write_file(&path, |out| file.write_to(out)).map_err(failed(&path))?);
    }
    sync_folder(folder).map_err(failed(folder))?;
    Ok(entries)
}

/// Makes the files of its step a checkpoint: writes the manifest into their folder in `dir`.
///
/// Call it when every stage's [`write_units`] has returned. Several stages may write the same manifest into one folder
/// at the same time; a stage with a disk of its own writes it beside its own files.
///
/// # Errors
/// The manifest cannot be written; then the folder is no checkpoint unless another stage makes it one.
pub fn commit(dir: &Path, manifest: &Manifest) -> Result<(), CheckpointError> {
    let text = manifest.to_json();
    let path = manifest_path(dir, manifest.step);
    write_file(&path, |out| out.write_all(&text))
        .and_then(|()| sync_folder(&step_folder(dir, manifest.step)))
        .map_err(|source| CheckpointError::Write { path, needed: text.len() as u64, source })
}

/// Makes the folder of step `step` no checkpoint any more, on the disk too, before its files are touched.
pub(super) fn retract(dir: &Path, step: u64) -> Result<(), CheckpointError> {
    let path = manifest_path(dir, step);
    let gone = fs::remove_file(&path).and_then(|()| sync_folder(&step_folder(dir, step)));
    removed(gone).map_err(CheckpointError::io("remove", &path))
}
