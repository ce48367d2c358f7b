//! The log-likelihood of each choice behind its context.

use super::{ChoicesError, Question};
use crate::data::Tokenizer;
use crate::evaluate::Pipeline;
use crate::generate::Session;

/// A question as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub(super) choices: Vec<Sequence>,
    /// Whether the begin of the context was cut off, to fit the model.
    pub truncated: bool,
}

/// A context and one choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) ids: Vec<u32>,
    /// How many of them are the context's; at least one.
    pub(super) context: usize,
}

/// What a model thinks of a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Sum of the natural logarithms of the probabilities of its tokens.
    pub log_likelihood: f64,
}

impl Encoded {
    /// The tokens of `question` behind the token `first`, with as much of the context as the model's `context` leaves
    /// room for.
    ///
    /// The tokens of context and choice are those of both as one text; those of the context alone tell where the choice
    /// begins. Spaces at the end of the context count to the choice, as tokenizers join them with the word behind.
    ///
    /// # Errors
    /// A text cannot be tokenized; a choice adds no token, is too long, or has neither a context nor a `first` token in
    /// front.
    pub fn new(
        question: &Question,
        tokenizer: &Tokenizer,
        first: Option<u32>,
        context: usize,
    ) -> Result<Self, ChoicesError> {
        let front = question.context.trim_end();
        let encode = |text: &str| -> Result<Vec<u32>, ChoicesError> {
            Ok(first.into_iter().chain(tokenizer.encode(text.as_bytes())?).collect())
        };
        let context_tokens = encode(front)?.len();
        let mut truncated = false;
        let choices = question.choices.iter().map(|choice| {
            let mut ids = encode(&[&question.context, question.delimiter, choice].concat())?;
            let tokens = ids.len().saturating_sub(context_tokens);
            if tokens == 0 || context_tokens == 0 {
                return Err(ChoicesError::NoTokens { choice: choice.clone() });
            }
            if tokens > context {
                return Err(ChoicesError::TooLong { tokens, context });
            }
            // The last token is not read, so one more fits.
            let excess = ids.len().saturating_sub(context + 1);
            truncated |= excess > 0;
            ids.drain(..excess);
            Ok(Sequence { context: ids.len() - tokens, ids })
        });
        let choices = choices.collect::<Result<_, _>>()?;
        Ok(Self { choices, truncated })
    }

    /// How likely the model finds each choice; a sequence crosses every boundary as one message.
    ///
    /// # Errors
    /// An activation that a codec cannot take, a logit that is not finite.
    pub fn score(&self, pipeline: &mut Pipeline, question: &Question) -> Result<Vec<Score>, ChoicesError> {
        let mut scores = Vec::with_capacity(self.choices.len());
        // Choices of one token share what the model reads.
        let mut read: Option<(&[u32], usize, Vec<f32>)> = None;
        for (sequence, choice) in self.choices.iter().zip(&question.choices) {
            let (input, tokens) = (sequence.input(), sequence.tokens());
            let logits = match read.take() {
                Some((ids, last, logits)) if ids == input && last == tokens => logits,
                _ => Session::new(pipeline, input.len())?.extend(pipeline, input, tokens)?,
            };
            let value = log_likelihood(&logits, &sequence.ids[sequence.context..]);
            if !value.is_finite() {
                return Err(ChoicesError::LogLikelihood { choice: choice.clone(), value });
            }
            scores.push(Score { log_likelihood: value });
            read = Some((input, tokens, logits));
        }
        Ok(scores)
    }
}

impl Sequence {
    /// Tokens of the choice.
    pub(super) fn tokens(&self) -> usize {
        self.ids.len() - self.context
    }

    /// What the model reads: all but the last token.
    fn input(&self) -> &[u32] {
        &self.ids[..self.ids.len() - 1]
    }
}

/// `sum_t log softmax(logits_t)[ids_t]` of `logits: [ids, vocab]`.
fn log_likelihood(logits: &[f32], ids: &[u32]) -> f64 {
    let rows = logits.chunks_exact(logits.len() / ids.len());
    let token = |(row, &id): (&[f32], &u32)| {
        let largest = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let sum: f64 = row.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
        f64::from(row[id as usize]) - largest - sum.ln()
    };
    rows.zip(ids).map(token).sum()
}
