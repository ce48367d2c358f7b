//! Where the answers lie in a rendered conversation.
//!
//! A template that has `{% generation %}` says so itself. With any other, an answer begins where the conversation before
//! it ends, rendered with the prompt for an answer; and it ends where the conversation up to and with it ends. Some
//! templates treat the last turn differently (they drop earlier thoughts, say), so that the shorter conversation is no
//! beginning of the longer: then the answer ends with the first token of the kind that the shorter one ends with.

use std::ops::Range;

use minijinja::Value;

use super::generation::{has_marks, unmark};
use super::{ChatTemplate, Rendered};
use crate::conversation::Conversation;
use crate::damage::RecordError;

impl ChatTemplate {
    /// The conversation as text, with the ranges of its answers, each with its end-of-turn token if that is one of
    /// `special_tokens` (the line break that often follows it is no part of the answer).
    pub(crate) fn render_answers(
        &self,
        conversation: &Conversation,
        special_tokens: &[String],
    ) -> Result<Rendered, RecordError> {
        let Conversation { messages, tools } = conversation;
        let text = self.render(messages, tools.as_ref(), false)?;
        if self.marks_answers {
            let own = serde_json::to_string(&(messages, tools)).expect("records came from JSON or Parquet");
            return if has_marks(&own) { Err(RecordError::Reserved) } else { unmark(&text) };
        }
        let finder = Finder { template: self, conversation, text: &text, special_tokens };
        let answers = conversation.answers().map(|at| finder.answer(at)).collect::<Result<_, _>>()?;
        Ok(Rendered { text, answers })
    }
}

struct Finder<'a> {
    template: &'a ChatTemplate,
    conversation: &'a Conversation,
    text: &'a str,
    special_tokens: &'a [String],
}

impl Finder<'_> {
    fn answer(&self, at: usize) -> Result<Range<usize>, RecordError> {
        let prompt = self.render(&self.conversation.messages[..at], true)?;
        if !self.text.starts_with(&prompt) {
            return Err(RecordError::NoSpan(at));
        }
        let start = prompt.len();
        let through = self.render(&self.conversation.messages[..=at], false)?;
        let whole = self.text.starts_with(&through).then_some(through.len());
        let end = whole.or_else(|| self.end_by_token(&through, start));
        let answer = end.and_then(|end| self.text.get(start..end)).ok_or(RecordError::NoSpan(at))?;
        Ok(start..start + self.without_break(answer))
    }

    fn end_by_token(&self, through: &str, start: usize) -> Option<usize> {
        let turn = through.trim_end();
        let token = self.special_tokens.iter().find(|token| turn.ends_with(&***token))?;
        Some(start + self.text[start..].find(&**token)? + token.len())
    }

    fn render(&self, messages: &[Value], prompt: bool) -> Result<String, RecordError> {
        self.template.render(messages, self.conversation.tools.as_ref(), prompt)
    }

    /// The length of an answer without white space behind a special token.
    fn without_break(&self, answer: &str) -> usize {
        let trimmed = answer.trim_end();
        let ends = self.special_tokens.iter().any(|token| trimmed.ends_with(&**token));
        if ends { trimmed.len() } else { answer.len() }
    }
}
