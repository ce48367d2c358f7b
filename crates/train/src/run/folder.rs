//! The folder of a run, as one finds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::{self, CheckpointError, Manifest};
use crate::config::{Config, ConfigError, StageUnits};

/// The resolved configuration in a run's folder.
pub const CONFIG_FILE: &str = "thinwire.toml";

/// The folder of the checkpoints in a run's folder.
pub const CHECKPOINTS: &str = "checkpoints";

/// A checkpoint, and the configuration of the run it belongs to.
#[derive(Debug)]
pub struct FoundCheckpoint {
    /// The folder that its step folder is in.
    pub dir: PathBuf,
    /// Its manifest, valid.
    pub manifest: Manifest,
    /// The run's configuration; `None` for a step folder without one around it.
    pub config: Option<Config>,
}

/// Why a path leads to no checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// There is nothing, or it cannot be looked at.
    #[error("cannot open {}", path.display())]
    Open {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else is there.
    #[error(
        "{} is neither a run's folder (with {CONFIG_FILE} or {CHECKPOINTS}/ in it) nor a checkpoint (a folder \
         named as step-00000100)", path.display()
    )]
    Other {
        /// The path given.
        path: PathBuf,
    },
    /// A run without a checkpoint that has all files of the model.
    #[error("{} has no complete checkpoint", path.display())]
    NoCheckpoint {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// The checkpoints or a manifest cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl FoundCheckpoint {
    /// The newest complete checkpoint of the run in `path`, or the checkpoint whose step folder `path` is.
    ///
    /// # Errors
    /// [`FindError`]. Of a step folder, only the manifest is looked at.
    pub fn find(path: &Path) -> Result<Self, FindError> {
        let open = |source| FindError::Open { path: path.into(), source };
        let folder = fs::canonicalize(path).map_err(open)?;
        let (run, dir, step) = match checkpoint::parse_step_folder(&folder) {
            Some((dir, step)) => (dir.parent(), dir.to_owned(), step),
            None if folder.join(CONFIG_FILE).is_file() || folder.join(CHECKPOINTS).is_dir() => {
                let dir = folder.join(CHECKPOINTS);
                let newest = newest_complete(&dir)?;
                let step = newest.ok_or_else(|| FindError::NoCheckpoint { path: dir.clone() })?;
                (Some(&*folder), dir, step)
            }
            None => return Err(FindError::Other { path: path.into() }),
        };
        let manifest = Manifest::read(&dir, step)?;
        let config = run.map(|run| run.join(CONFIG_FILE)).filter(|file| file.is_file());
        let config = config.map(|file| Config::load_written(&file)).transpose()?;
        Ok(Self { dir, manifest, config })
    }

    /// The checkpoint's own folder.
    pub fn folder(&self) -> PathBuf {
        checkpoint::step_folder(&self.dir, self.manifest.step)
    }
}

/// The newest step in `dir` that has every file of the model.
fn newest_complete(dir: &Path) -> Result<Option<u64>, CheckpointError> {
    let Some(latest) = checkpoint::latest(dir)? else { return Ok(None) };
    let whole = StageUnits::whole(latest.run.architecture.layers);
    Ok(checkpoint::available(dir, &whole)?.pop())
}
