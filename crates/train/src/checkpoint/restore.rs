//! Restoring: everything is checked before anything is changed.

use std::fs;
use std::path::Path;

use burn::tensor::Device;

use super::error::{CheckpointError, require};
use super::layout::{Kind, file_name, manifest_path, step_folder};
use super::list::latest;
use super::source::Source;
use super::{Manifest, RunFacts};
use crate::config::Unit;
use crate::model::{Part, Shard, Start};
use crate::optim::{AdamW, Moments};

/// Sets `part` and `optimizer` to what they were after step `step`, however the units were grouped when it was written.
///
/// The files are read twice: first to check size, SHA-256, header and every tensor's name, type and shape; then,
/// one unit at a time, for their values.
///
/// # Errors
/// The checkpoint is not whole, or not of the run `expected` (its [`RunFacts::run`] and [`RunFacts::stages`] may
/// differ); nothing is changed then. Only when a file that was just checked cannot be read a second time are `part` and
/// `optimizer` left partly restored, and must be dropped.
pub fn restore(
    dir: &Path,
    step: u64,
    part: &mut Part,
    optimizer: &mut AdamW,
    expected: &RunFacts,
) -> Result<Manifest, CheckpointError> {
    let manifest = Manifest::read(dir, step)?;
    manifest.run.check(expected, &manifest_path(dir, step))?;
    load(dir, &manifest, part, Some(optimizer))?;
    Ok(manifest)
}

/// Checks that a run that goes on as the run `expected` can go on from the newest checkpoint in `dir`, if there is one.
///
/// # Errors
/// A manifest cannot be read, or is not of that run.
pub fn check_run(dir: &Path, expected: &RunFacts) -> Result<(), CheckpointError> {
    let Some(manifest) = latest(dir)? else { return Ok(()) };
    manifest.run.check(expected, &manifest_path(dir, manifest.step))
}

/// Sets `part` to the weights after step `step`, for evaluation; the optimizer's files are not looked at. Of a run that
/// trained adapters, they alone are set: the weights that they adapt are `part`'s own.
///
/// # Errors
/// As [`restore`], but of the run only the model must be the same.
pub fn restore_weights(dir: &Path, step: u64, part: &mut Part) -> Result<Manifest, CheckpointError> {
    let manifest = Manifest::read(dir, step)?;
    load(dir, &manifest, part, None)?;
    Ok(manifest)
}

/// The units `units` of the model with the weights after step `step`, on `device` (without autodiff).
///
/// No memory is taken for a model that the manifest only claims: the units' files must be as large as their parameters.
///
/// # Errors
/// The manifest's model is none, the checkpoint has adapters alone, or as [`restore_weights`].
pub fn load_part(dir: &Path, step: u64, units: &[Unit], device: &Device) -> Result<Part, CheckpointError> {
    load_shard(dir, step, units, Shard::WHOLE, device)
}

/// One rank's share of them.
///
/// # Errors
/// As [`load_part`].
pub fn load_shard(
    dir: &Path,
    step: u64,
    units: &[Unit],
    shard: Shard,
    device: &Device,
) -> Result<Part, CheckpointError> {
    let manifest = Manifest::read(dir, step)?;
    let whole = manifest.run.architecture.lora.is_none();
    require(whole, &manifest_path(dir, step), "parameters", "those of a whole model", "adapters alone")?;
    check_sizes(dir, &manifest, units)?;
    let mut part = Part::of_shard(&manifest.run.architecture, units, Start::Empty, shard, device);
    load(dir, &manifest, &mut part, None)?;
    Ok(part)
}

/// Checks that the manifest's model can be, and that the files of `units` are as large as their parameters.
pub(super) fn check_sizes(dir: &Path, manifest: &Manifest, units: &[Unit]) -> Result<(), CheckpointError> {
    let architecture = &manifest.run.architecture;
    let path = manifest_path(dir, manifest.step);
    architecture.validate().map_err(|source| CheckpointError::Model { path, source: Box::new(source) })?;
    for &unit in units {
        let path = step_folder(dir, manifest.step).join(file_name(unit, Kind::Weights));
        let found = fs::metadata(&path).map_err(CheckpointError::io("open", &path))?.len();
        let least = architecture.trainable(unit).saturating_mul(size_of::<f32>() as u64);
        require(found >= least, &path, "size in bytes", format_args!("at least {least}"), found)?;
    }
    Ok(())
}

fn load(
    dir: &Path,
    manifest: &Manifest,
    part: &mut Part,
    mut optimizer: Option<&mut AdamW>,
) -> Result<(), CheckpointError> {
    let path = manifest_path(dir, manifest.step);
    manifest.run.check_architecture(part.architecture(), &path)?;
    let sources = sources(dir, manifest, part, optimizer.is_some());
    sources.iter().try_for_each(Source::check)?;
    for source in &sources {
        match &mut optimizer {
            Some(optimizer) if source.kind == Kind::Optimizer => restore_moments(source, part, optimizer)?,
            _ => restore_values(source, part)?,
        }
    }
    Ok(())
}

/// The files of the units of `part`.
pub(super) fn sources(dir: &Path, manifest: &Manifest, part: &Part, with_optimizer: bool) -> Vec<Source> {
    let kinds: &[Kind] = if with_optimizer { &[Kind::Weights, Kind::Optimizer] } else { &[Kind::Weights] };
    let folder = step_folder(dir, manifest.step);
    let files =
        part.units().flat_map(|(unit, range)| kinds.iter().map(move |&kind| (unit, range.clone(), kind)));
    files
        .map(|(unit, range, kind)| {
            let path = folder.join(file_name(unit, kind));
            let entry =
                manifest.entry(unit, kind).expect("the model of the manifest is the model of the part");
            Source::new(path, entry.clone(), part.params(), range, kind)
        })
        .collect()
}

fn restore_values(source: &Source, part: &mut Part) -> Result<(), CheckpointError> {
    let (_, values) = source.read()?;
    let trainable = part.params().trainable(&source.range);
    let tensors: Vec<_> = trainable
        .zip(values)
        .map(|((_, parameter), values)| part.params().upload(parameter.slice.take(values)))
        .collect();
    let parameters = part.params_mut().iter_mut().skip(source.range.start).take(source.range.len());
    let trainable = parameters.filter(|parameter| parameter.trainable);
    trainable.zip(tensors).for_each(|(parameter, tensor)| parameter.value = tensor);
    Ok(())
}

fn restore_moments(source: &Source, part: &Part, optimizer: &mut AdamW) -> Result<(), CheckpointError> {
    let (updates, values) = source.read()?;
    let mut tensors = values.into_iter();
    for (index, parameter) in part.params().trainable(&source.range) {
        let mut moment = || tensors.next().map(|values| part.params().upload(parameter.slice.take(values)));
        let moments = moment().zip(moment());
        optimizer.restore(index, moments.map(|(first, second)| Moments { updates, first, second }));
    }
    Ok(())
}
