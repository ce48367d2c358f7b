//! The folder of a run.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use thinwire_train::config::Config;
use thinwire_train::metrics::{METRICS_FILE, TRACE_FILE};

use crate::error::CommandError;

/// The resolved configuration, as the run used it.
const CONFIG_FILE: &str = "thinwire.toml";
/// What else a run writes, besides the metrics.
const CHECKPOINTS: &str = "checkpoints";
const KEYS: &str = "keys";
/// Locked while a run goes on, by the system, so that a killed run leaves no lock.
const LOCK: &str = ".lock";

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

    /// Takes the folder: a fresh run needs one without an earlier run, or the leave to [clear](Self::clear) it; a
    /// resumed one needs the earlier run. The folder is this process's own as long as the file that is returned stays
    /// open.
    pub(crate) fn claim(&self, resume: bool, overwrite: bool) -> Result<File, CommandError> {
        let holds_run = self.holds_run().map_err(|error| at("read", &self.0, &error))?;
        let path = self.0.display();
        match (holds_run, resume, overwrite) {
            (true, false, false) => {
                return Err(format!(
                    "{path} already holds a run: continue it with --resume, replace it with --overwrite, or choose \
                     another folder with --set run.dir=FOLDER"
                )
                .into());
            }
            (false, true, _) => return Err(format!("{path} holds no run to resume").into()),
            _ => fs::create_dir_all(&self.0).map_err(|error| at("create", &self.0, &error))?,
        }
        self.lock()
    }

    fn lock(&self) -> Result<File, CommandError> {
        let path = self.0.join(LOCK);
        let file = File::options().append(true).create(true).open(&path);
        let file = file.map_err(|error| at("create", &path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                Err(format!("{} is in use by a run that goes on", self.0.display()).into())
            }
            // Some network file systems have no locks; a run there is not kept from being disturbed.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                Err(at("lock", &path, &error))
            }
            _ => Ok(file),
        }
    }

    /// Whether a run has left steps or checkpoints here; one that failed before its first step has left nothing.
    fn holds_run(&self) -> io::Result<bool> {
        let metrics = found(fs::metadata(self.0.join(METRICS_FILE)))?.is_some_and(|file| file.len() > 0);
        let checkpoints =
            found(fs::read_dir(self.checkpoints()))?.is_some_and(|mut list| list.next().is_some());
        Ok(metrics || checkpoints)
    }

    /// Removes what a run writes, and nothing else.
    pub(crate) fn clear(&self) -> Result<(), CommandError> {
        for name in [CHECKPOINTS, KEYS] {
            let path = self.0.join(name);
            found(fs::remove_dir_all(&path)).map_err(|error| at("remove", &path, &error))?;
        }
        for name in [METRICS_FILE, TRACE_FILE, CONFIG_FILE] {
            let path = self.0.join(name);
            found(fs::remove_file(&path)).map_err(|error| at("remove", &path, &error))?;
        }
        for entry in fs::read_dir(&self.0).map_err(|error| at("read", &self.0, &error))? {
            let path = entry?.path();
            let is_events = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("events.out.tfevents."));
            if is_events {
                found(fs::remove_file(&path)).map_err(|error| at("remove", &path, &error))?;
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

/// `None` for what is not there.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn at(action: &str, path: &Path, error: &io::Error) -> CommandError {
    format!("cannot {action} {}: {error}", path.display()).into()
}
