//! What can go wrong with multiple-choice questions.

use std::io;
use std::path::PathBuf;

use crate::data::TokenizeError;
use crate::generate::GenerateError;

/// Why there is no accuracy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChoicesError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No line is a question.
    #[error("{} has no question that can be used: {damaged} of {damaged} lines are damaged{}", path.display(), first.as_deref().unwrap_or_default())]
    NoQuestion {
        /// The file.
        path: PathBuf,
        /// Lines that are not empty.
        damaged: usize,
        /// What is wrong with the first.
        first: Option<String>,
    },
    /// A question that cannot be tokenized.
    #[error("a question or a choice")]
    Tokenize(#[from] TokenizeError),
    /// A choice adds nothing to its question.
    #[error("the choice {choice:?} has no tokens of its own, or none are in front of it")]
    NoTokens {
        /// The choice.
        choice: String,
    },
    /// A choice alone is longer than the model's context.
    #[error("a choice of {tokens} tokens: the model takes at most {context}")]
    TooLong {
        /// Tokens of the choice.
        tokens: usize,
        /// The model's context.
        context: usize,
    },
    /// The model cannot take a sequence, or a codec an activation.
    #[error(transparent)]
    Model(#[from] GenerateError),
    /// A log-likelihood that cannot be compared.
    #[error("the log-likelihood of choice {choice:?} is {value}")]
    LogLikelihood {
        /// The choice.
        choice: String,
        /// What it is.
        value: f64,
    },
}

/// Why a line is no question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is no JSON object.
    #[error("not a JSON object: {0}")]
    Json(serde_json::Error),
    /// Its fields are those of no format.
    #[error("the fields {found} are those of no known format")]
    Unknown {
        /// Names of the fields.
        found: String,
    },
    /// A field is not there or of another type.
    #[error("`{field}` is missing or not {expected}")]
    Field {
        /// Its name, or names of which one is needed.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// The right choice is not told.
    #[error("no answer: none of {fields} is there")]
    NoAnswer {
        /// Where it could be.
        fields: &'static str,
    },
    /// The right choice is none of the choices.
    #[error("the answer {answer} is none of the {choices} choices")]
    NoSuchChoice {
        /// What is there.
        answer: String,
        /// How many there are.
        choices: usize,
    },
    /// There is nothing to choose from.
    #[error("{found} choices: at least 2 are needed")]
    TooFewChoices {
        /// How many there are.
        found: usize,
    },
    /// A choice without text.
    #[error("choice {index} is empty")]
    EmptyChoice {
        /// Its number, from 0.
        index: usize,
    },
}
