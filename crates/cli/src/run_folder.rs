//! The folder of a run.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thinwire_train::config::Config;
use thinwire_train::metrics::{METRICS_FILE, TRACE_FILE};

use crate::error::CommandError;

/// The resolved configuration, as the run used it.
const CONFIG_FILE: &str = "thinwire.toml";
/// What else a run writes, besides the metrics.
const CHECKPOINTS: &str = "checkpoints";
const KEYS: &str = "keys";

/// A run's folder and what a run puts there.
#[derive(Debug)]
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    pub(crate) fn of(config: &Config) -> Self {
        Self(config.run.dir.clone())
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.0.join(CONFIG_FILE)
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.0.join(CHECKPOINTS)
    }

    pub(crate) fn key_file(&self, stage: usize) -> PathBuf {
        self.0.join(KEYS).join(format!("stage-{stage}.pem"))
    }

    /// Makes the folder ready: a fresh run needs one without an earlier run, a resumed one needs the earlier run.
    pub(crate) fn prepare(&self, resume: bool, overwrite: bool) -> Result<(), CommandError> {
        let holds_run = self.config_file().exists();
        let path = self.0.display();
        match (holds_run, resume, overwrite) {
            (true, false, false) => Err(format!(
                "{path} already holds a run: continue it with --resume, replace it with --overwrite, or choose \
                 another folder with --set run.dir=FOLDER"
            )
            .into()),
            (false, true, _) => Err(format!("{path} holds no run to resume").into()),
            (true, false, true) => self.clear(),
            _ => fs::create_dir_all(&self.0).map_err(|error| at("create", &self.0, &error)),
        }
    }

    /// Removes what a run writes, and nothing else.
    fn clear(&self) -> Result<(), CommandError> {
        for name in [METRICS_FILE, TRACE_FILE, CONFIG_FILE] {
            let path = self.0.join(name);
            gone(fs::remove_file(&path)).map_err(|error| at("remove", &path, &error))?;
        }
        for name in [CHECKPOINTS, KEYS] {
            let path = self.0.join(name);
            gone(fs::remove_dir_all(&path)).map_err(|error| at("remove", &path, &error))?;
        }
        for entry in fs::read_dir(&self.0).map_err(|error| at("read", &self.0, &error))? {
            let path = entry?.path();
            let is_events = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events.out.tfevents."));
            if is_events {
                gone(fs::remove_file(&path)).map_err(|error| at("remove", &path, &error))?;
            }
        }
        Ok(())
    }

    /// Keeps the configuration the run uses. Written whole or not at all.
    pub(crate) fn write_config(&self, config: &Config) -> Result<(), CommandError> {
        let path = self.config_file();
        let new = path.with_extension("toml.new");
        fs::write(&new, config.to_toml()?)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| at("write", &path, &error))
    }
}

/// What is not there need not be removed.
fn gone(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn at(action: &str, path: &Path, error: &io::Error) -> CommandError {
    format!("cannot {action} {}: {error}", path.display()).into()
}
