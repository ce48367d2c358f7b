//! The chat template of a model: Jinja, as Hugging Face's transformers renders it.

mod answers;
mod environment;
mod file;
mod generation;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use jiff::civil::Date;
use minijinja::{Environment, Value, context};

use crate::damage::RecordError;
use crate::tokenizer::{ModelTexts, Tokenizer};
use crate::{DataError, TemplateError};

pub(crate) use file::find;

/// A compiled template with the special tokens it names.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    special_tokens: Value,
    /// Whether it says itself what an answer is, with `{% generation %}`.
    marks_answers: bool,
    /// Text and special tokens, which the tokenized data depends on.
    pub(crate) identity: String,
}

/// A conversation as text, and where its answers lie in it: byte ranges, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    pub(crate) answers: Vec<Range<usize>>,
}

impl ChatTemplate {
    /// The template in `path`, else the one of the tokenizer's model.
    pub(crate) fn load(path: Option<&Path>, tokenizer: &Tokenizer, date: &str) -> Result<Self, DataError> {
        let date: Date = date.parse().map_err(|_| DataError::Date { date: date.to_owned() })?;
        let model = tokenizer.texts()?;
        let (path, (template, special_tokens)) = match (path, model) {
            (Some(path), model) => {
                (path.to_owned(), file::read(path, model.map(|(_, texts)| texts.special_tokens))?)
            }
            (None, Some((path, ModelTexts { chat_template: Some(template), special_tokens }))) => {
                (path, (template, special_tokens))
            }
            (None, model) => return Err(DataError::NoTemplate { model: model.map(|(path, _)| path) }),
        };
        Self::new(&template, special_tokens, date)
            .map_err(|source| DataError::Template { path, source: TemplateError::Jinja(source) })
    }

    fn new(
        template: &str,
        special_tokens: BTreeMap<String, String>,
        date: Date,
    ) -> Result<Self, minijinja::Error> {
        let identity = serde_json::to_string(&(template, &special_tokens));
        let (source, marks_answers) = generation::rewrite(template);
        let mut environment = environment::new(date);
        environment.add_template_owned("chat", source)?;
        Ok(Self {
            environment,
            special_tokens: Value::from_pairs(special_tokens),
            marks_answers,
            identity: identity.expect("texts are JSON"),
        })
    }

    /// `messages` as text, up to where the model would begin to answer.
    pub(crate) fn prompt(&self, messages: &[Value]) -> Result<String, DataError> {
        let text = self.render(messages, None, true);
        text.map_err(|error| DataError::Conversation { reason: error.to_string() })
    }

    /// `messages` as text; with `prompt`, up to where the model would begin to answer.
    fn render(&self, messages: &[Value], tools: Option<&Value>, prompt: bool) -> Result<String, RecordError> {
        let template = self.environment.get_template("chat").expect("it was added");
        let variables = context! {
            messages => messages,
            tools => tools,
            documents => Value::from(()),
            add_generation_prompt => prompt,
            ..self.special_tokens.clone()
        };
        template.render(variables).map_err(|error| RecordError::Template(reason(&error)))
    }
}

/// The message that a template raised, or what went wrong and where.
fn reason(error: &minijinja::Error) -> String {
    match (error.detail(), error.line()) {
        (Some(detail), _) if detail.starts_with(environment::RAISED) => {
            detail[environment::RAISED.len()..].to_owned()
        }
        (detail, line) => {
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            let line = line.map(|line| format!(" (line {line})")).unwrap_or_default();
            format!("{}{detail}{line}", error.kind())
        }
    }
}

#[cfg(test)]
mod tests;
