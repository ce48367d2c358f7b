//! One sequence on its way through a pipeline.

use super::GenerateError;
use crate::evaluate::Pipeline;
use crate::model::KvCache;
use crate::pipeline::Extended;

/// A sequence that grows: a cache of keys and values for every part of a [`Pipeline`] on each of its ranks.
#[derive(Clone, Debug)]
pub struct Session {
    caches: Vec<Vec<KvCache>>,
    tokens: usize,
    capacity: usize,
    vocab: usize,
}

impl Session {
    /// An empty sequence of at most `capacity` tokens in the parts of `pipeline`; memory is taken for all of them.
    ///
    /// # Errors
    /// The model's context is shorter.
    pub fn new(pipeline: &Pipeline, capacity: usize) -> Result<Self, GenerateError> {
        let arch = pipeline.architecture();
        if capacity > arch.context {
            return Err(GenerateError::TooLong { prompt: 0, more: capacity, context: arch.context });
        }
        let caches = pipeline.parts().iter().map(|part| part.caches(capacity)).collect();
        Ok(Self { caches, tokens: 0, capacity, vocab: arch.vocab })
    }

    /// Tokens so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Appends `ids`, which cross every boundary as one message. The logits `[last, vocab]`, row-major, of what follows
    /// each of the last `last` of them.
    ///
    /// After an error of a codec the sequence cannot go on.
    ///
    /// # Errors
    /// There is no room for `ids`, or one is not in the vocabulary; an activation that a codec cannot take, ranks that cannot
    /// add up.
    ///
    /// # Panics
    /// When `last` is 0 or more than there are `ids`, or `pipeline` is another one.
    pub fn extend(
        &mut self,
        pipeline: &mut Pipeline,
        ids: &[u32],
        last: usize,
    ) -> Result<Vec<f32>, GenerateError> {
        assert!((1..=ids.len()).contains(&last), "the last {last} of {} tokens", ids.len());
        if ids.len() > self.capacity - self.tokens {
            let (prompt, more, context) = (self.tokens, ids.len(), self.capacity);
            return Err(GenerateError::TooLong { prompt, more, context });
        }
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab) {
            return Err(GenerateError::UnknownToken { id, vocab: self.vocab });
        }
        let start = self.tokens;
        self.tokens += ids.len();
        let (parts, boundaries) = pipeline.parts_and_boundaries();
        let mut boundaries = boundaries.iter_mut();
        let mut entered = None;
        for (part, caches) in parts.iter().zip(&mut self.caches) {
            entered = match (part.extend(ids, entered, caches, last)?, boundaries.next()) {
                (Extended::Hidden(h), Some(boundary)) => Some(boundary.pass(h, start)?),
                (Extended::Logits(logits), None) => return Ok(logits),
                _ => unreachable!("the last part, and no other, ends with the head"),
            };
        }
        unreachable!("there is a last part")
    }
}
