//! The fields of a record.

use serde_json::{Map, Value};

use super::Format;
use crate::choices::RecordError;

/// A JSON object with the fields of some data set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>(pub(super) &'a Map<String, Value>);

/// Choices and their names: letters, digits.
pub(super) struct Choices {
    pub(super) texts: Vec<String>,
    pub(super) labels: Vec<String>,
}

impl<'a> Record<'a> {
    pub(super) fn get(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, field: &'static str) -> Result<&'a str, RecordError> {
        let expected = "a string";
        self.get(field).and_then(Value::as_str).ok_or(RecordError::Field { field, expected })
    }

    /// The format whose fields these are.
    pub(super) fn format(self) -> Option<Format> {
        let has = |field| self.get(field).is_some();
        let options = self.get("options").and_then(Value::as_str);
        Some(match () {
            () if has("endings") || self.get("answer").is_some_and(Value::is_array) => Format::HellaSwag,
            () if has("sol1") || options.is_some_and(|options| lettered(options).len() == 2) => Format::Piqa,
            () if has("passage") => Format::BoolQ,
            () if has("context") && has("choices") => Format::Generic,
            () if self.get("choices").is_some_and(Value::is_object) => Format::Arc,
            () if has("question") && (has("choices") || has("options")) => Format::Mmlu,
            () => return None,
        })
    }

    /// `choices` or `options`: a list of texts, lists of texts and labels, or one text with lines that begin with `A. `,
    /// `B. `, ...
    pub(super) fn choices(self) -> Result<Choices, RecordError> {
        let field = "choices` or `options";
        let wrong = RecordError::Field { field, expected: "texts" };
        let Some(value) = self.get("choices").or_else(|| self.get("options")) else { return Err(wrong) };
        if let Some(options) = value.as_str() {
            let texts = lettered(options);
            return Ok(Choices { labels: letters(texts.len()), texts });
        }
        let Some(texts) = texts(if value.is_object() { &value["text"] } else { value }) else {
            return Err(wrong);
        };
        let labels = self::texts(&value["label"]).unwrap_or_else(|| letters(texts.len()));
        Ok(Choices { texts, labels })
    }
}

/// The strings of a list.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// `A`, `B`, ...
pub(super) fn letters(count: usize) -> Vec<String> {
    ('A'..='Z').take(count).map(String::from).collect()
}

/// What stands behind `A. `, `B. `, ..., each at the begin of a line; nothing if the first text does not begin so.
fn lettered(options: &str) -> Vec<String> {
    let mut choices: Vec<String> = Vec::new();
    for line in options.trim_start().lines() {
        let letter = char::from(b'A' + choices.len().min(25) as u8);
        let next = line.strip_prefix(letter).and_then(|rest| rest.strip_prefix(". "));
        match (next, choices.last_mut()) {
            (Some(choice), _) => choices.push(choice.to_owned()),
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (None, None) => return Vec::new(),
        }
    }
    for choice in &mut choices {
        *choice = choice.trim().to_owned();
    }
    choices
}
