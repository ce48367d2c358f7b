//! What files hold, told by their names and their first record.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use minijinja::Value;
use serde::Serialize;

use super::{Content, read};
use crate::{Columns, DataError, DataSettings, Format};

/// How records lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// The file is the record.
    Text,
    /// JSON, one record a line or all in one array.
    Json,
    /// Parquet.
    Parquet,
}

/// What a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) enum Kind {
    /// The text is the file.
    Plain,
    /// The text is in this field.
    Text(String),
    /// `{role, content}` messages in this field.
    Messages(String),
    /// `{from, value}` messages in this field.
    Sharegpt(String),
    /// A question and an answer.
    Alpaca(Columns),
}

impl Kind {
    /// Whether records are conversations, and answers what is trained on.
    pub(crate) fn is_conversation(&self) -> bool {
        matches!(self, Self::Messages(_) | Self::Sharegpt(_) | Self::Alpaca(_))
    }

    /// The columns that are read of a Parquet file.
    pub(crate) fn columns(&self) -> Vec<String> {
        match self {
            Self::Plain => Vec::new(),
            Self::Text(field) => vec![field.clone()],
            Self::Messages(field) | Self::Sharegpt(field) => vec![field.clone(), "tools".to_owned()],
            Self::Alpaca(Columns { instruction, input, output }) => {
                vec![instruction.clone(), input.clone(), output.clone(), "system".to_owned()]
            }
        }
    }

    /// How `path` holds such records.
    pub(crate) fn container(&self, path: &Path) -> Result<Container, DataError> {
        match self {
            Self::Plain => Ok(Container::Text),
            _ if is_parquet(path)? => Ok(Container::Parquet),
            _ => Ok(Container::Json),
        }
    }
}

/// What the files hold: as the settings say, or as the first file looks.
pub(crate) fn detect(files: &[PathBuf], settings: &DataSettings) -> Result<Kind, DataError> {
    let field = |default: &str| settings.field.clone().unwrap_or_else(|| default.to_owned());
    Ok(match settings.format {
        Format::Text => Kind::Plain,
        Format::Jsonl | Format::Parquet => Kind::Text(field("text")),
        Format::Messages => Kind::Messages(field("messages")),
        Format::Sharegpt => Kind::Sharegpt(field("conversations")),
        Format::Alpaca => Kind::Alpaca(settings.columns.clone()),
        Format::Auto => {
            let first = files.first().expect("a setting names at least one file");
            match container_by_name(first)? {
                Container::Text => Kind::Plain,
                container => by_fields(first, container, settings)?,
            }
        }
    })
}

fn container_by_name(path: &Path) -> Result<Container, DataError> {
    let json = ["jsonl", "json", "ndjson"];
    Ok(match path.extension() {
        Some(end) if end == "parquet" => Container::Parquet,
        Some(end) if json.iter().any(|json| end == *json) => {
            if is_parquet(path)? {
                Container::Parquet
            } else {
                Container::Json
            }
        }
        _ => Container::Text,
    })
}

fn is_parquet(path: &Path) -> Result<bool, DataError> {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    match read {
        Ok(()) => Ok(&magic == b"PAR1"),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(source) => Err(DataError::Read { path: path.into(), source }),
    }
}

/// The kind of the first record that can be read.
fn by_fields(path: &Path, container: Container, settings: &DataSettings) -> Result<Kind, DataError> {
    let mut found = None;
    let end = |kind| {
        // Not an error, but the way to stop reading.
        found = Some(kind);
        Err(DataError::NoRecords { path: path.into() })
    };
    let mut end = end;
    let result = read(path, container, &[], &mut |_, content| match content {
        Ok(Content::Record(record)) => end(kind_of(&record, settings)),
        _ => Ok(()),
    });
    match (found, result) {
        (Some(Some(kind)), _) => Ok(kind),
        (Some(None), _) => Err(DataError::UnknownRecords { path: path.into() }),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(DataError::NoRecords { path: path.into() }),
    }
}

fn kind_of(record: &Value, settings: &DataSettings) -> Option<Kind> {
    let has = |field: &str| record.get_attr(field).is_ok_and(|value| !value.is_undefined());
    let columns = &settings.columns;
    if let Some(field) = settings.field.as_ref().filter(|field| has(field)) {
        return kind_of_field(record, field);
    }
    if has("messages") {
        Some(Kind::Messages("messages".to_owned()))
    } else if has("conversations") {
        kind_of_field(record, "conversations")
    } else if has(&columns.instruction) && has(&columns.output) {
        Some(Kind::Alpaca(columns.clone()))
    } else if has("text") {
        Some(Kind::Text("text".to_owned()))
    } else {
        None
    }
}

/// By what the field holds: a text, or messages of either style.
fn kind_of_field(record: &Value, field: &str) -> Option<Kind> {
    let value = record.get_attr(field).ok()?;
    if value.as_str().is_some() {
        return Some(Kind::Text(field.to_owned()));
    }
    let first = value.try_iter().ok()?.next();
    let from = first.is_some_and(|first| first.get_attr("from").is_ok_and(|from| !from.is_undefined()));
    Some(if from { Kind::Sharegpt(field.to_owned()) } else { Kind::Messages(field.to_owned()) })
}
