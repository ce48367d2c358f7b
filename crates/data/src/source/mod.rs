//! Files to records, one at a time: no reader holds more than one record or piece.

mod files;
mod json_array;
mod json_lines;
mod kind;
mod parquet;
mod text;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use minijinja::Value;

pub use files::require_files;
pub(crate) use files::{content_sha256, expand, total_bytes};
pub(crate) use kind::{Container, Kind, detect};

use crate::DataError;
use crate::damage::RecordError;

/// The longest record, in bytes: more is an accident, and would have to be held in memory.
pub(crate) const LONGEST_RECORD: usize = 64 << 20;

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// It is the file.
    Whole,
    /// Starts in this line, from 1.
    Line(u64),
    /// Is this one, from 1.
    Record(u64),
}

/// A record's file and place.
pub(crate) struct Place<'a>(pub(crate) &'a Path, pub(crate) At);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.display();
        match self.1 {
            At::Whole => write!(f, "{path}"),
            At::Line(line) => write!(f, "{path}:{line}"),
            At::Record(record) => write!(f, "{path}: record {record}"),
        }
    }
}

/// What a reader finds.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// A piece of a text, and whether it is the last one.
    Text(Vec<u8>, bool),
    /// An object with fields.
    Record(Value),
}

/// Takes what a reader finds; an error ends the reading.
pub(crate) type Visit<'a> = dyn FnMut(At, Result<Content, RecordError>) -> Result<(), DataError> + 'a;

/// Reads `path` from its first record to its last. `columns` are the only ones needed; others may be left out.
pub(crate) fn read(
    path: &Path,
    container: Container,
    columns: &[String],
    visit: &mut Visit<'_>,
) -> Result<(), DataError> {
    let unreadable = |source| DataError::Read { path: path.into(), source };
    match container {
        Container::Text => {
            text::read(&mut File::open(path).map_err(unreadable)?, visit).map_err(|failure| failure.of(path))
        }
        Container::Json => {
            let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
            skip_byte_order_mark(&mut file).map_err(unreadable)?;
            let result = if json_array::starts(&mut file).map_err(unreadable)? {
                json_array::read(&mut file, LONGEST_RECORD, visit)
            } else {
                json_lines::read(&mut file, LONGEST_RECORD, visit)
            };
            result.map_err(|failure| failure.of(path))
        }
        Container::Parquet => parquet::read(path, columns, visit),
    }
}

/// What ended a reading: the file or the visitor.
#[derive(Debug)]
enum Failure {
    Io(std::io::Error),
    Visit(DataError),
}

impl Failure {
    fn of(self, path: &Path) -> DataError {
        match self {
            Self::Io(source) => DataError::Read { path: path.into(), source },
            Self::Visit(error) => error,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::Visit(error)
    }
}

fn skip_byte_order_mark(file: &mut impl BufRead) -> std::io::Result<()> {
    if file.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        file.consume(3);
    }
    Ok(())
}

/// A record from its JSON text.
fn parse(json: &[u8]) -> Result<Content, RecordError> {
    let text = std::str::from_utf8(json).map_err(|_| RecordError::NotUtf8)?;
    // serde_json stops at 128 levels of nesting.
    serde_json::from_str(text).map(Content::Record).map_err(|error| RecordError::Json(error.to_string()))
}
