//! Names of folders and files.

use std::fs;
use std::path::{Path, PathBuf};

use thinwire_codec::DType;

use super::CheckpointError;
use crate::config::{StageUnits, Unit};
use crate::memory::End;

/// Written last: it makes the folder a checkpoint.
const MANIFEST: &str = "manifest.json";

/// Which of a unit's two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its parameters.
    Weights,
    /// The optimizer's state for them.
    Optimizer,
}

/// The folder of the checkpoint of step `step` in the run's checkpoint folder `dir`.
pub fn step_folder(dir: &Path, step: u64) -> PathBuf {
    dir.join(folder_name(step))
}

/// The run's checkpoint folder and the step, if `folder` has a name that [`step_folder`] gives.
pub fn parse_step_folder(folder: &Path) -> Option<(&Path, u64)> {
    Some((folder.parent()?, parse_folder_name(folder.file_name()?.to_str()?)?))
}

/// The manifest of the checkpoint of step `step`.
pub(super) fn manifest_path(dir: &Path, step: u64) -> PathBuf {
    step_folder(dir, step).join(MANIFEST)
}

/// The name of one file, such as `layer-0003.optimizer.safetensors`.
pub(super) fn file_name(unit: Unit, kind: Kind) -> String {
    let stem = match unit {
        Unit::Embed => "embed".to_owned(),
        Unit::Block(block) => format!("layer-{block:04}"),
        Unit::Head => "head".to_owned(),
    };
    match kind {
        Kind::Weights => format!("{stem}.safetensors"),
        Kind::Optimizer => format!("{stem}.optimizer.safetensors"),
    }
}

/// The names of the files of `units`, in model order, weights first.
pub(super) fn file_names(units: &StageUnits) -> impl Iterator<Item = String> + use<> {
    units.iter().flat_map(|unit| [Kind::Weights, Kind::Optimizer].map(|kind| file_name(unit, kind)))
}

/// The name of the file of what one end of a boundary remembers, such as `boundary-0004.sent.f32`.
pub(super) fn memory_name(before: usize, end: End, keep: DType) -> String {
    format!("boundary-{before:04}.{}.{keep}", end.name())
}

/// Whether [`memory_name`] gives this name for a model of `layers` blocks.
pub(super) fn is_memory_name(name: &str, layers: usize) -> bool {
    let parse = || {
        let (before, rest) = name.strip_prefix("boundary-")?.split_once('.')?;
        let (end, keep) = rest.split_once('.')?;
        let end = End::ALL.into_iter().find(|known| known.name() == end)?;
        let before = before.parse().ok().filter(|before| *before <= layers)?;
        Some(memory_name(before, end, keep.parse().ok()?))
    };
    parse().is_some_and(|parsed| parsed == name)
}

/// The steps that have a folder in `dir`, complete or not, in ascending order; none if `dir` does not exist.
pub(super) fn steps(dir: &Path) -> Result<Vec<u64>, CheckpointError> {
    let list = || {
        let mut steps = Vec::new();
        for entry in fs::read_dir(dir)? {
            steps.extend(entry?.file_name().to_str().and_then(parse_folder_name));
        }
        steps.sort_unstable();
        Ok(steps)
    };
    match list().map_err(CheckpointError::io("list the checkpoints in", dir)) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        result => result,
    }
}

fn folder_name(step: u64) -> String {
    format!("step-{step:08}")
}

fn parse_folder_name(name: &str) -> Option<u64> {
    let step = name.strip_prefix("step-")?.parse().ok()?;
    (folder_name(step) == name).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_round_trip() {
        for step in [0, 1, 99_999_999, 100_000_000, u64::MAX] {
            assert_eq!(parse_folder_name(&folder_name(step)), Some(step));
        }
        for name in
            ["step-1", "step-+0000001", "step-000000001", "step-00000001.tmp", "step-", "0000001", "runs"]
        {
            assert_eq!(parse_folder_name(name), None, "{name}");
        }
    }

    #[test]
    fn memories_have_names_of_their_own() {
        for end in End::ALL {
            assert!(is_memory_name(&memory_name(4, end, DType::BF16), 4));
            assert!(!is_memory_name(&memory_name(5, end, DType::BF16), 4));
        }
        assert_eq!(memory_name(4, End::Sent, DType::F32), "boundary-0004.sent.f32");
        for name in [
            "boundary-4.sent.f32",
            "boundary-+004.sent.f32",
            "boundary-0004.sent",
            "boundary-0004.lost.f32",
            "boundary-0004.sent.f64",
            "boundary-0004.sent.f32/../..",
            "layer-0004.safetensors",
        ] {
            assert!(!is_memory_name(name, 9), "{name}");
        }
    }

    #[test]
    fn file_names_are_in_model_order() {
        let units = StageUnits::whole(1);
        let names: Vec<String> = file_names(&units).collect();
        assert_eq!(
            names,
            [
                "embed.safetensors",
                "embed.optimizer.safetensors",
                "layer-0000.safetensors",
                "layer-0000.optimizer.safetensors",
                "head.safetensors",
                "head.optimizer.safetensors",
            ]
        );
    }
}
