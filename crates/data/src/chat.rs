//! A message to a model, in the words of its chat template.

use std::str;

use minijinja::{Value, context};

use crate::conversation::Conversation;
use crate::template::ChatTemplate;
use crate::{DataError, DataSettings, TokenizeError, Tokenizer};

/// What a model reads before it answers a message, and what ends the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPrompt {
    /// Token ids up to where the answer begins.
    pub tokens: Vec<u32>,
    /// The special token that the template puts behind an answer; `None` if answers end otherwise.
    pub end_of_turn: Option<u32>,
}

impl ChatPrompt {
    /// The `user`'s message, behind what the model is told in the role `system`, if anything. The template and its date
    /// are those of `settings`, and the template by default the tokenizer's own.
    ///
    /// The ids are those of transformers' `apply_chat_template` with `add_generation_prompt`: the template alone decides
    /// whether the text begins with a special token.
    ///
    /// # Errors
    /// There is no template, it cannot be used or raises an error, or the message is not UTF-8.
    pub fn new(
        tokenizer: &Tokenizer,
        settings: &DataSettings,
        system: Option<&str>,
        user: &[u8],
    ) -> Result<Self, DataError> {
        let template = ChatTemplate::load(settings.template.as_deref(), tokenizer, &settings.date)?;
        let user = str::from_utf8(user).map_err(|error| DataError::Message(TokenizeError::NotUtf8(error)))?;
        let system = system.map(|content| message("system", content));
        let messages: Vec<Value> = system.into_iter().chain([message("user", user)]).collect();
        let text = template.prompt(&messages)?;
        let tokens = tokenizer.encode(text.as_bytes()).map_err(DataError::Message)?;
        Ok(Self { tokens, end_of_turn: end_of_turn(&template, tokenizer, messages) })
    }
}

fn message(role: &str, content: &str) -> Value {
    context! { role, content }
}

/// The special token at the end of an answer, found by rendering one, as for training.
fn end_of_turn(template: &ChatTemplate, tokenizer: &Tokenizer, mut messages: Vec<Value>) -> Option<u32> {
    messages.push(message("assistant", "Yes."));
    let special_tokens = tokenizer.special_tokens();
    let conversation = Conversation { messages, tools: None };
    let rendered = template.render_answers(&conversation, &special_tokens).ok()?;
    let answer = &rendered.text[rendered.answers.last()?.clone()];
    let end = special_tokens.iter().find(|token| answer.ends_with(&***token))?;
    tokenizer.token_id(end)
}
