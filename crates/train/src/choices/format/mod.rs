//! How data sets write their questions, and how the harness asks them.

mod answer;
mod prompt;
mod record;

use std::str::FromStr;

use serde_json::{Map, Value};

use super::{Question, RecordError};
use record::Record;

/// A data set's kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Told by each record's fields.
    Auto,
    /// `context` and `choices` as they are.
    Generic,
    /// Endings of a scene (Zellers et al., 2019).
    HellaSwag,
    /// Two ways to reach a goal (Bisk et al., 2020).
    Piqa,
    /// School science, the choices as text (Clark et al., 2018).
    Arc,
    /// Exams, the choices as letters (Hendrycks et al., 2021).
    Mmlu,
    /// Yes or no about a passage (Clark et al., 2019).
    BoolQ,
}

/// A text that names no format.
#[derive(Debug, thiserror::Error)]
#[error("expected auto, generic, hellaswag, piqa, arc, mmlu or boolq")]
pub struct FormatError;

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text {
            "auto" => Ok(Self::Auto),
            "generic" => Ok(Self::Generic),
            "hellaswag" => Ok(Self::HellaSwag),
            "piqa" => Ok(Self::Piqa),
            "arc" => Ok(Self::Arc),
            "mmlu" => Ok(Self::Mmlu),
            "boolq" => Ok(Self::BoolQ),
            _ => Err(FormatError),
        }
    }
}

impl Format {
    /// The question in a record: with the field names of the data set's own files, or of others that carry it.
    ///
    /// # Errors
    /// A field is missing or of the wrong type, or tells no answer.
    pub fn question(self, record: &Map<String, Value>) -> Result<Question, RecordError> {
        let record = Record(record);
        match self {
            Self::Auto => {
                let found = || record.0.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                match record.format() {
                    Some(format) => format.question(record.0),
                    None => Err(RecordError::Unknown { found: found() }),
                }
            }
            Self::Generic => prompt::generic(record),
            Self::HellaSwag => prompt::hellaswag(record),
            Self::Piqa => prompt::piqa(record),
            Self::Arc => prompt::arc(record),
            Self::Mmlu => prompt::mmlu(record),
            Self::BoolQ => prompt::boolq(record),
        }
    }
}

#[cfg(test)]
mod tests;
