//! The experiment file, and the matrix of runs that it stands for.

mod error;
mod file;
mod matrix;
mod row;

use std::fs;
use std::path::{Path, PathBuf};

use thinwire_train::config::{parse_strictly, paths};

pub use error::ExperimentError;
pub use file::{Experiment, Lab, LinkAxis, OnFailure, Setting, Variant};
pub use row::{Coordinates, Row};

impl Experiment {
    /// Reads and checks the file; paths in it are relative to its folder and become absolute.
    ///
    /// # Errors
    /// It cannot be read or is not TOML, a key is not known, or a value is not valid.
    pub fn load(path: &Path) -> Result<Self, ExperimentError> {
        let read = |source| ExperimentError::Read { path: path.into(), source };
        let text = fs::read_to_string(path).map_err(read)?;
        let path = fs::canonicalize(path).map_err(read)?;
        let folder = path.parent().unwrap_or(&path);
        Self::parse_in(&text, folder).map_err(|error| error.within(&path))
    }

    /// As [`Experiment::load`], from the text itself.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn parse_in(text: &str, folder: &Path) -> Result<Self, ExperimentError> {
        let mut experiment: Self = parse_strictly(text)?;
        experiment.validate()?;
        let lab = &mut experiment.lab;
        let absolute = |path: &PathBuf| paths::join(folder, path);
        (lab.config, lab.dir) = (absolute(&lab.config), absolute(&lab.dir));
        text.clone_into(&mut experiment.text);
        Ok(experiment)
    }
}
