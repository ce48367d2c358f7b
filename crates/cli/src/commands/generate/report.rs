//! What a generation took.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use thinwire_codec::CodecSpec;
use thinwire_train::evaluate::Boundary;
use thinwire_train::generate::{End, Statistics};

use crate::tensor_parallel::Sums;

/// The result of `thinwire generate`. The lists have one entry for each boundary, in model order.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) text: String,
    /// `stop` after the model's end of text, `length` after as many tokens as were asked for.
    pub(super) end: &'static str,
    pub(super) tokens: usize,
    /// Passes over single tokens; nothing when the first token was the last.
    pub(super) tokens_per_second: Option<f64>,
    pub(super) prompt_tokens: usize,
    pub(super) prompt_tokens_per_second: Option<f64>,
    /// The block behind each boundary.
    pub(super) boundaries: Vec<usize>,
    pub(super) codec: Vec<CodecSpec>,
    /// What crossed each boundary, prompt and all.
    pub(super) bytes: Vec<u64>,
    pub(super) bits_per_element: Vec<f64>,
    pub(super) rel_sq_error: Vec<f64>,
    /// Of a model that ranks share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all_reduce: Option<Sums>,
    pub(super) model: PathBuf,
    /// Of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
}

impl Report {
    /// All but where the model came from, and what its ranks did.
    pub(super) fn new(text: String, end: Option<End>, took: Statistics, boundaries: &[Boundary]) -> Self {
        Self {
            text,
            end: match end {
                Some(End::Stop) => "stop",
                Some(End::Length) => "length",
                None => "unread",
            },
            tokens: took.tokens,
            tokens_per_second: rate(took.passes, took.passes_time),
            prompt_tokens: took.prompt_tokens,
            prompt_tokens_per_second: rate(took.prompt_tokens, took.prompt_time),
            boundaries: boundaries.iter().map(Boundary::before).collect(),
            codec: boundaries.iter().map(Boundary::codec).collect(),
            bytes: boundaries.iter().map(Boundary::bytes).collect(),
            bits_per_element: boundaries.iter().map(Boundary::bits_per_element).collect(),
            rel_sq_error: boundaries.iter().map(Boundary::rel_sq_error).collect(),
            all_reduce: None,
            model: PathBuf::new(),
            step: None,
        }
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}

/// The figures, without the text.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed =
            |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!(", {rate:.1} tokens/s"));
        writeln!(f, "prompt     {} tokens{}", self.prompt_tokens, speed(self.prompt_tokens_per_second))?;
        write!(
            f,
            "generated  {} tokens{}, end: {}",
            self.tokens,
            speed(self.tokens_per_second),
            self.end
        )?;
        if let Some(sums) = &self.all_reduce {
            write!(f, "\n{sums}")?;
        }
        if self.boundaries.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{:<10}{:>12}{:>14}{:>16}  codec", "boundary", "bytes", "bits/element", "rel. sq. error")?;
        let figures = self.bytes.iter().zip(&self.bits_per_element).zip(&self.rel_sq_error);
        for ((before, codec), ((bytes, bits), error)) in self.boundaries.iter().zip(&self.codec).zip(figures)
        {
            write!(f, "\n{before:<10}{bytes:>12}{bits:>14.3}{error:>16.3e}  {codec}")?;
        }
        Ok(())
    }
}
