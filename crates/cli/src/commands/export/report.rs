//! What was written.

use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;

use super::DType;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) folder: PathBuf,
    pub(super) model_type: &'static str,
    /// Whether it has adapters alone.
    pub(super) adapter: bool,
    pub(super) parameters: u64,
    pub(super) dtype: DType,
    pub(super) files: Vec<File>,
    pub(super) model: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct File {
    name: String,
    bytes: u64,
}

/// The files in `folder`, by name.
pub(super) fn files(folder: &Path) -> io::Result<Vec<File>> {
    let file = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok(File { name: entry.file_name().to_string_lossy().into_owned(), bytes: entry.metadata()?.len() })
    };
    let mut files = fs::read_dir(folder)?.map(file).collect::<io::Result<Vec<_>>>()?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, model_type, adapter, parameters, dtype, files, model, step } = self;
        let kind = if *adapter { "adapters of " } else { "" };
        write!(f, "{}", model.display())?;
        if let Some(step) = step {
            write!(f, ", step {step}")?;
        }
        write!(f, ": {kind}{model_type}, {parameters} parameters, as {dtype:?} in {}", folder.display())?;
        let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
        files.iter().try_for_each(|File { name, bytes }| write!(f, "\n  {name:width$}  {bytes} bytes"))
    }
}
