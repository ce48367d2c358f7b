//! What can go wrong in a generation.

use crate::data::TokenizeError;
use crate::evaluate::EvaluateError;

/// Why there is no further token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The model, its tokenizer, or an activation that a codec cannot take.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// There is nothing to continue.
    #[error("the prompt has no tokens, and the model has none that every text begins with")]
    EmptyPrompt,
    /// A prompt that cannot be tokenized, or a token that is none.
    #[error("the prompt or its continuation")]
    Tokenize(#[from] TokenizeError),
    /// The sequence would not fit into the model.
    #[error("{prompt} tokens of prompt and {more} more: the model takes at most {context}")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens that are to follow.
        more: usize,
        /// The model's context.
        context: usize,
    },
    /// A token id that the model does not have.
    #[error("token {id} of the prompt: the model has {vocab}")]
    UnknownToken {
        /// The token.
        id: u32,
        /// Ids of the model.
        vocab: usize,
    },
    /// Logits that cannot be compared.
    #[error("the logit of token {id} at position {position} is {value}: there is no next token")]
    Logit {
        /// The token.
        id: usize,
        /// Tokens in front of it.
        position: usize,
        /// Its logit.
        value: f32,
    },
    /// A setting of the sampling out of its range.
    #[error("{name} is {value}: expected {expected}")]
    Sampling {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
}
