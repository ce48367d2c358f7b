//! Which choice is the right one.

use serde_json::Value;

use super::record::{Choices, Record};
use crate::choices::RecordError;

/// Where data sets keep it.
const FIELDS: [&str; 4] = ["label", "answer", "answerKey", "gold"];

/// The number of the right choice: told as a number from 0, by its label, by its text, or by both as in `B. text`.
///
/// # Errors
/// It is not told, or is none of the choices.
pub(super) fn answer(record: Record<'_>, choices: &Choices) -> Result<usize, RecordError> {
    let fields = "`label`, `answer`, `answerKey`, `gold`";
    let value = FIELDS.iter().find_map(|field| record.get(field).filter(|value| !value.is_array()));
    let value = value.filter(|value| value.as_str() != Some(""));
    let value = value.ok_or(RecordError::NoAnswer { fields })?;
    let count = choices.texts.len();
    let index = match value {
        Value::String(text) => named(text.trim(), choices),
        value => value.as_u64().and_then(|index| usize::try_from(index).ok()),
    };
    index
        .filter(|&index| index < count)
        .ok_or_else(|| RecordError::NoSuchChoice { answer: value.to_string(), choices: count })
}

fn named(text: &str, Choices { texts, labels }: &Choices) -> Option<usize> {
    let is = |name: &String| name.trim() == text;
    let both = || {
        let mut pairs = labels.iter().zip(texts);
        pairs.position(|(label, choice)| {
            text.strip_prefix(label.as_str()).and_then(|rest| rest.strip_prefix(". ")) == Some(choice)
        })
    };
    let number = || text.parse().ok();
    labels.iter().position(is).or_else(|| texts.iter().position(is)).or_else(both).or_else(number)
}
