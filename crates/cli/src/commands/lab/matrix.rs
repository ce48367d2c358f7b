//! What an experiment would run.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use thinwire_lab::experiment::{Coordinates, Row};

/// The rows, in the order in which they are run.
#[derive(Debug, Serialize)]
pub(super) struct Matrix {
    rows: Vec<Planned>,
}

#[derive(Debug, Serialize)]
struct Planned {
    #[serde(flatten)]
    at: Coordinates,
    folder: PathBuf,
    command: Vec<String>,
}

impl Matrix {
    pub(super) fn new(rows: &[Row]) -> Self {
        let planned = |row: &Row| Planned {
            at: row.at.clone(),
            folder: row.config.run.dir.clone(),
            command: row.command.clone(),
        };
        Self { rows: rows.iter().map(planned).collect() }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, row) in self.rows.iter().enumerate() {
            writeln!(f, "{:>3}  {}", index + 1, row.at)?;
        }
        write!(f, "{} rows", self.rows.len())
    }
}
