//! One question, ready for a model.

use super::RecordError;

/// What the model reads, and what might follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The prompt.
    pub context: String,
    /// What separates the context from every choice: a space or nothing.
    pub delimiter: &'static str,
    /// At least two.
    pub choices: Vec<String>,
    /// The right one, from 0.
    pub answer: usize,
}

impl Question {
    /// A question whose choices follow the context as words of the same text.
    ///
    /// # Errors
    /// There are fewer than two choices, one is empty, or the answer is none of them.
    pub(super) fn new(context: String, choices: Vec<String>, answer: usize) -> Result<Self, RecordError> {
        if choices.len() < 2 {
            return Err(RecordError::TooFewChoices { found: choices.len() });
        }
        if let Some(index) = choices.iter().position(String::is_empty) {
            return Err(RecordError::EmptyChoice { index });
        }
        if answer >= choices.len() {
            return Err(RecordError::NoSuchChoice { answer: answer.to_string(), choices: choices.len() });
        }
        Ok(Self { context, delimiter: " ", choices, answer })
    }
}
