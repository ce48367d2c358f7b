//! The report's files.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::table::Table;
use super::{Report, plot};
use crate::folder::{FolderError, remove, write, write_json};

/// The files, the one that says that all are there last.
const CSV: &str = "rows.csv";
const HTML: &str = "report.html";
const JSON: &str = "report.json";
const PICTURES: &str = "plots";

impl Report {
    /// Writes all files of the report into `folder`, each whole or not at all, `report.json` last. Returns the page.
    ///
    /// # Errors
    /// A file cannot be written; a picture cannot be drawn, which is told as such an error.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, FolderError> {
        let pictures = folder.join(PICTURES);
        fs::create_dir_all(&pictures).map_err(FolderError::io("create", &pictures))?;
        let plots = plot::all(self).map_err(FolderError::io("draw the pictures in", &pictures))?;
        for plot in &plots {
            write(&pictures.join(format!("{}.svg", plot.name)), plot.svg.as_bytes())?;
        }
        write(&folder.join(CSV), self.to_csv().as_bytes())?;
        let page = folder.join(HTML);
        write(&page, self.to_html(&plots).as_bytes())?;
        write_json(&folder.join(JSON), self)?;
        Ok(page)
    }

    /// Removes the report that is in `folder`, if there is one.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(folder: &Path) -> Result<(), FolderError> {
        for name in [JSON, HTML, CSV] {
            remove(&folder.join(name))?;
        }
        let pictures = folder.join(PICTURES);
        match fs::remove_dir_all(&pictures) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FolderError::io("remove", &pictures)(error))
            }
            _ => Ok(()),
        }
    }
}

/// For people: speed, losses and failures.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", Table::throughput(self), Table::loss(self))?;
        for row in self.failed() {
            writeln!(f, "\nfailed: {}: {}", row.at, row.error.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}
