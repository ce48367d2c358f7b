//! Prompt in, tokens out.

use std::time::{Duration, Instant};

use super::{GenerateError, Sampler, Sampling, Session};
use crate::evaluate::Pipeline;

/// What is to be generated.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tokens that stand in front; at least one.
    pub prompt: Vec<u32>,
    /// Tokens to generate at most.
    pub max_tokens: usize,
    /// Tokens that end the text; they are not part of it.
    pub stop: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// Why a generation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model has ended its text.
    Stop,
    /// There are as many tokens as were asked for.
    Length,
}

/// How many tokens there were, and how long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// The pass over the prompt.
    pub prompt_time: Duration,
    /// Tokens that were generated, a stop token not among them.
    pub tokens: usize,
    /// Passes over single tokens; the last token needs none, the first comes out of the prompt's.
    pub passes: usize,
    /// All of those passes.
    pub passes_time: Duration,
}

/// An iterator over the tokens that follow a prompt.
///
/// It ends after a stop token, after `max_tokens`, or after an error.
#[derive(Debug)]
pub struct Generation<'a> {
    pipeline: &'a mut Pipeline,
    session: Session,
    sampler: Sampler,
    request: Request,
    /// Of the next token.
    logits: Vec<f32>,
    /// Chosen, but not yet part of the sequence.
    pending: Option<u32>,
    end: Option<End>,
    failed: bool,
    statistics: Statistics,
}

impl<'a> Generation<'a> {
    /// Reads the prompt.
    ///
    /// # Errors
    /// The prompt is empty, has unknown tokens or leaves no room in the context for `max_tokens` more; a setting of the
    /// sampling is out of range; an activation that a codec cannot take.
    pub fn start(pipeline: &'a mut Pipeline, request: Request) -> Result<Self, GenerateError> {
        let sampler = Sampler::new(request.sampling)?;
        let prompt = request.prompt.len();
        if prompt == 0 {
            return Err(GenerateError::EmptyPrompt);
        }
        let context = pipeline.architecture().context;
        let length = prompt.checked_add(request.max_tokens).filter(|&length| length <= context);
        let too_long = GenerateError::TooLong { prompt, more: request.max_tokens, context };
        let mut session = Session::new(pipeline, length.ok_or(too_long)?)?;
        let begin = Instant::now();
        let logits = session.extend(pipeline, &request.prompt, 1)?;
        let statistics =
            Statistics { prompt_tokens: prompt, prompt_time: begin.elapsed(), ..Statistics::default() };
        let (pending, end) = (None, None);
        Ok(Self { pipeline, session, sampler, request, logits, pending, end, failed: false, statistics })
    }

    /// Why there are no more tokens; `None` while there may be some, and after an error.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// What it took so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The next token, or the end.
    fn advance(&mut self) -> Result<Option<u32>, GenerateError> {
        if self.statistics.tokens == self.request.max_tokens {
            self.end = Some(End::Length);
            return Ok(None);
        }
        if let Some(id) = self.pending.take() {
            let begin = Instant::now();
            self.logits = self.session.extend(self.pipeline, &[id], 1)?;
            self.statistics.passes += 1;
            self.statistics.passes_time += begin.elapsed();
        }
        let id = self.sampler.pick(&self.logits, self.session.tokens())?;
        if self.request.stop.contains(&id) {
            self.end = Some(End::Stop);
            return Ok(None);
        }
        self.pending = Some(id);
        self.statistics.tokens += 1;
        Ok(Some(id))
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<u32, GenerateError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() || self.failed {
            return None;
        }
        let token = self.advance();
        self.failed = token.is_err();
        token.transpose()
    }
}
