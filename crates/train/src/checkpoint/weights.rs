//! The weights of a checkpoint, one tensor at a time.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use burn::tensor::Device;

use super::layout::manifest_path;
use super::restore::{check_sizes, sources};
use super::source::Source;
use super::{CheckpointError, Manifest};
use crate::config::{StageUnits, Unit};
use crate::model::{Architecture, Part};

/// The weights of all units, in their files; of a run that trained adapters, these alone.
#[derive(Debug)]
pub struct Weights {
    manifest: PathBuf,
    sources: Vec<Source>,
}

impl Weights {
    /// Opens those after step `step`, of the model `architecture`. The files are read once, to check size, SHA-256, header
    /// and every tensor's name, type and shape.
    ///
    /// # Errors
    /// The manifest's model is another or none, or the checkpoint is not whole.
    pub fn open(dir: &Path, step: u64, architecture: &Architecture) -> Result<Self, CheckpointError> {
        let manifest = Manifest::read(dir, step)?;
        manifest.run.check_architecture(architecture, &manifest_path(dir, step))?;
        let whole = StageUnits::whole(architecture.layers);
        let units: Vec<Unit> = whole.iter().collect();
        check_sizes(dir, &manifest, &units)?;
        // Parts are built for the names and shapes of their parameters; the zeros in them are never touched.
        let device = Device::flex();
        let of_unit = |unit| sources(dir, &manifest, &Part::empty(architecture, &[unit], &device), false);
        let sources: Vec<Source> = units.into_iter().flat_map(of_unit).collect();
        sources.iter().try_for_each(Source::check)?;
        Ok(Self { manifest: manifest_path(dir, step), sources })
    }

    /// The values of a parameter, row-major. The copy in the head of a tied matrix is `lm_head.weight`.
    ///
    /// # Errors
    /// There is no parameter `name`, its shape is not `shape`, or its file cannot be read.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CheckpointError> {
        let mismatch = |found: &dyn Display| CheckpointError::Mismatch {
            path: self.manifest.clone(),
            what: format!("parameter `{name}`"),
            expected: format!("shape {shape:?}"),
            found: found.to_string(),
        };
        let place = self.sources.iter().find_map(|source| Some((source, source.place(name)?)));
        let (source, place) = place.ok_or_else(|| mismatch(&"none"))?;
        let found = source.shape(place);
        if found != shape {
            return Err(mismatch(&format_args!("{found:?}")));
        }
        source.read_one(place)
    }
}
