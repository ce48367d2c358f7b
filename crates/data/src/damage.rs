//! Records that cannot be used.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many damaged records are named.
const NAMED: usize = 5;

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("not UTF-8")]
    NotUtf8,
    #[error("not valid JSON: {0}")]
    Json(String),
    #[error("the file ends inside the record")]
    CutOff,
    #[error("longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("not an object")]
    NotAnObject,
    #[error("the field `{0}` is missing")]
    Missing(String),
    #[error("the field `{field}` is not {expected}")]
    WrongType { field: String, expected: &'static str },
    #[error("the text is empty")]
    Empty,
    #[error("the conversation is empty")]
    EmptyConversation,
    #[error("message {0} is not an object with a role and a content")]
    NotAMessage(usize),
    #[error("unknown role `{0}`")]
    UnknownRole(String),
    #[error("the conversation has no answer")]
    NoAnswer,
    #[error("the chat template: {0}")]
    Template(String),
    #[error(
        "the chat template does not show where answer {0} lies: it renders a conversation and its beginning differently"
    )]
    NoSpan(usize),
    #[error("holds a character that marks answers (U+FDD0 or U+FDD1)")]
    Reserved,
    #[error("no token of an answer is left to train on")]
    NothingTrained,
    #[error("the tokenizer: {0}")]
    Tokenizer(String),
}

/// The records of a data set that could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// All records, damaged or not.
    pub records: u64,
    /// Those that could not be used.
    pub damaged: u64,
    /// The first of them: `file:line: reason`, or `file: record N: reason`.
    pub named: Vec<String>,
}

impl Damage {
    pub(crate) fn count(&mut self, place: impl fmt::Display, error: &RecordError) {
        self.damaged += 1;
        if self.named.len() < NAMED {
            self.named.push(format!("{place}: {error}"));
        }
    }

    /// Damaged records to all records.
    pub fn share(&self) -> f64 {
        if self.records == 0 { 0.0 } else { self.damaged as f64 / self.records as f64 }
    }
}

/// `3 of 200 records cannot be used (a.jsonl:7: not valid JSON: …; …)`
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} records cannot be used", self.damaged, self.records)?;
        if self.named.is_empty() {
            return Ok(());
        }
        let more = if self.damaged > self.named.len() as u64 { "; …" } else { "" };
        write!(f, " ({}{more})", self.named.join("; "))
    }
}
