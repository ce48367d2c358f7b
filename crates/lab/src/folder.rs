//! The folder of an experiment: `rows/` with a run's folder for each row, and the report.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::Builder;
use thinwire_train::config::LayerPlan;
use thinwire_train::fidelity::FidelityReport;
use thinwire_train::metrics::{METRICS_FILE, MetricsError, Record, RunReport, StepRecord, read_records};

use crate::experiment::{Coordinates, Row};
use crate::network::LinkRate;

/// What a row has come to, in its folder.
const ROW_FILE: &str = "row.json";
const ROWS: &str = "rows";
/// Locked while an experiment goes on, by the system, so that a killed one leaves no lock.
const LOCK: &str = ".lock";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system refused: a full disk, a missing right, ...
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There are rows of an earlier experiment.
    #[error(
        "{} already holds rows of an experiment: keep those that are done with --resume, replace them with --overwrite, \
         or choose another lab.dir", path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// Another process works on it.
    #[error("{} is in use by an experiment that goes on", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is not what its name says.
    #[error("{} is not of this version of Thinwire, or damaged", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the parser expected.
        source: serde_json::Error,
    },
    /// A run's metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl FolderError {
    /// For `map_err`: an [`Io`](FolderError::Io) error of `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// A row that has been run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Where it is in the matrix.
    pub at: Coordinates,
    /// The row's when it was run.
    pub fingerprint: String,
    /// The command that makes the same run by itself, without the network.
    pub command: Vec<String>,
    /// The layer map of the run.
    pub layers: LayerPlan,
    /// Seconds that the row took, with all that is around the training.
    pub seconds: f64,
    /// What the links carried before the run; empty where they are as the configuration has them.
    pub links_before: Vec<LinkRate>,
    /// The same after the run; empty after one that failed.
    pub links_after: Vec<LinkRate>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Finished {
    /// Whether it ended well, with the configuration that `row` has now.
    pub fn is_done_as(&self, row: &Row) -> bool {
        self.fingerprint == row.fingerprint && !matches!(self.outcome, Outcome::Failed(_))
    }
}

/// How a row ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Well.
    Done(Box<RunReport>),
    /// Well, in one process, gradients compared.
    Measured(FidelityReport),
    /// The error with its causes.
    Failed(String),
}

/// An experiment's folder; this process's own as long as the value lives.
#[derive(Debug)]
pub struct LabFolder {
    path: PathBuf,
    _lock: File,
}

impl LabFolder {
    /// Takes the folder. A report that is there goes: it is not of the rows that are to come.
    ///
    /// # Errors
    /// It holds rows already, neither `resume` nor `overwrite` says what to do with them; another process has it; it
    /// cannot be written.
    pub fn claim(path: &Path, resume: bool, overwrite: bool) -> Result<Self, FolderError> {
        let rows = path.join(ROWS);
        let occupied = match fs::read_dir(&rows) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(FolderError::Io { action: "read", path: rows, source }),
        };
        if occupied && !resume && !overwrite {
            return Err(FolderError::Occupied { path: path.into() });
        }
        fs::create_dir_all(&rows).map_err(FolderError::io("create", &rows))?;
        let lock = path.join(LOCK);
        let file = File::options().append(true).create(true).open(&lock);
        let file = file.map_err(FolderError::io("create", &lock))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse { path: path.into() }),
            // Some network file systems have no locks; an experiment there is not kept from being disturbed.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(FolderError::io("lock", &lock)(error));
            }
            _ => {}
        }
        Ok(Self { path: path.into(), _lock: file })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `row` came to when it was run before.
    ///
    /// # Errors
    /// The file cannot be read, or is none of ours.
    pub fn finished(&self, row: &Row) -> Result<Option<Finished>, FolderError> {
        let path = row.config.run.dir.join(ROW_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FolderError::io("read", &path)(error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|source| FolderError::Corrupt { path, source })
    }

    /// Forgets what `row` came to, and its run's steps, which are not those of a run that fails before its first one.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn forget(&self, row: &Row) -> Result<(), FolderError> {
        [ROW_FILE, METRICS_FILE].iter().try_for_each(|name| remove(&row.config.run.dir.join(name)))
    }

    /// Keeps what `row` came to, and of its run's folder what is still of use: checkpoints are large.
    ///
    /// # Errors
    /// A file cannot be written, or a folder not be removed.
    pub fn keep(&self, row: &Row, finished: &Finished, checkpoints: bool) -> Result<(), FolderError> {
        let folder = &row.config.run.dir;
        fs::create_dir_all(folder).map_err(FolderError::io("create", folder))?;
        let useless = if checkpoints { &["keys"][..] } else { &["keys", "checkpoints"] };
        for path in useless.iter().map(|name| folder.join(name)) {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(FolderError::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        write_json(&folder.join(ROW_FILE), finished)
    }
}

/// The steps that the run of `row` has recorded; none if it failed before its first.
///
/// # Errors
/// The metrics cannot be read.
pub fn steps(row: &Row) -> Result<Vec<StepRecord>, FolderError> {
    let path = row.config.run.dir.join(METRICS_FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let steps = read_records(&path)?.into_iter().filter_map(|record| match record {
        Record::Step(step) => Some(step),
        Record::Eval(_) => None,
    });
    Ok(steps.collect())
}

/// Writes a value as a JSON file, whole or not at all.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FolderError> {
    let text = serde_json::to_vec_pretty(value);
    write(path, &text.map_err(|error| FolderError::io("encode", path)(error.into()))?)
}

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut temporary = Builder::new();
    temporary.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask, as any new file
    let mut file = temporary.tempfile_in(folder).map_err(FolderError::io("write in", folder))?;
    file.write_all(content).map_err(FolderError::io("write", path))?;
    file.persist(path).map(drop).map_err(|error| FolderError::io("write", path)(error.error))
}

/// Removes a file that may be missing.
pub(crate) fn remove(path: &Path) -> Result<(), FolderError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FolderError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
