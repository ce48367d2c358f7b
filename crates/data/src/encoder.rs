//! Records to tokens.

use minijinja::Value;

use crate::conversation::Conversation;
use crate::damage::RecordError;
use crate::entry::{START, TRAINED, id};
use crate::source::{Kind, LONGEST_RECORD};
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// Everything that the tokens of a record depend on.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) kind: &'a Kind,
    /// For conversations.
    pub(crate) template: Option<&'a ChatTemplate>,
    /// Of the tokenizer.
    pub(crate) special_tokens: Vec<String>,
    /// What every document is to end with, if anything.
    pub(crate) end: Option<u32>,
}

impl Encoder<'_> {
    /// The tokens of a record, as entries; its end-of-text token is among them.
    pub(crate) fn record(&self, record: &Value) -> Result<Vec<u32>, RecordError> {
        let mut entries = match self.kind {
            Kind::Text(field) => self.text_field(record, field)?,
            kind => self.conversation(&Conversation::new(record, kind)?)?,
        };
        entries[0] |= START;
        self.end(&mut entries);
        Ok(entries)
    }

    /// The tokens of a piece of text, all trained on.
    pub(crate) fn piece(&self, text: &[u8]) -> Result<Vec<u32>, RecordError> {
        let ids = self.tokenizer.encode(text).map_err(|error| RecordError::Tokenizer(chain(&error)))?;
        Ok(ids.into_iter().map(|id| id | TRAINED).collect())
    }

    /// Ends a document; one that ends so already, as many templates do, stays as it is. Whoever writes a text has to end
    /// it, whoever answers has ended the turn before.
    pub(crate) fn end(&self, entries: &mut Vec<u32>) {
        let last = entries.last().copied().map(id);
        if let Some(end) = self.end.filter(|&end| last != Some(end)) {
            entries.push(if self.kind.is_conversation() { end } else { end | TRAINED });
        }
    }

    fn text_field(&self, record: &Value, field: &str) -> Result<Vec<u32>, RecordError> {
        let missing = || RecordError::Missing(field.to_owned());
        let value = record.get_attr(field).map_err(|_| RecordError::NotAnObject)?;
        if value.is_undefined() || value.is_none() {
            return Err(missing());
        }
        let wrong = || RecordError::WrongType { field: field.to_owned(), expected: "a text" };
        let entries = self.piece(value.as_str().ok_or_else(wrong)?.as_bytes())?;
        if entries.is_empty() { Err(RecordError::Empty) } else { Ok(entries) }
    }

    /// A token counts as an answer's if all of its bytes do: at the model's own turn it begins anew.
    fn conversation(&self, conversation: &Conversation) -> Result<Vec<u32>, RecordError> {
        let template = self.template.expect("conversations come with a template");
        let rendered = template.render_answers(conversation, &self.special_tokens)?;
        if rendered.text.len() > LONGEST_RECORD {
            return Err(RecordError::TooLong { limit: LONGEST_RECORD });
        }
        let tokens = self.tokenizer.encode_with_places(&rendered.text);
        let tokens = tokens.map_err(|error| RecordError::Tokenizer(chain(&error)))?;
        let mut answers = rendered.answers.iter().peekable();
        let mut any = false;
        let mut entries = Vec::with_capacity(tokens.len() + 1);
        for (id, place) in tokens {
            while answers.next_if(|answer| answer.end < place.end).is_some() {}
            let trained =
                answers.peek().is_some_and(|answer| answer.start <= place.start && !place.is_empty());
            // The first token is never predicted.
            any |= trained && !entries.is_empty();
            entries.push(if trained { id | TRAINED } else { id });
        }
        if any { Ok(entries) } else { Err(RecordError::NothingTrained) }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
