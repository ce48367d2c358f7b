//! What an evaluation found.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use thinwire_codec::CodecSpec;

use crate::tensor_parallel::Sums;

/// The result of `thinwire eval`. The lists have one entry for each boundary, in model order.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// With compression.
    pub(super) perplexity: f64,
    pub(super) tokens: u64,
    pub(super) bits_per_element: Vec<f64>,
    pub(super) rel_sq_error: Vec<f64>,
    pub(super) messages: Vec<u64>,
    /// Those of tensors below the codec's `raw_below`, which went raw.
    pub(super) raw_messages: Vec<u64>,
    pub(super) uncompressed: Uncompressed,
    /// The block behind each boundary.
    pub(super) boundaries: Vec<usize>,
    pub(super) codec: Vec<CodecSpec>,
    /// Of a model that ranks share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all_reduce: Option<Sums>,
    pub(super) model: PathBuf,
    /// Of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
    pub(super) sequence: usize,
    /// Tokens from one sequence to the next.
    pub(super) stride: usize,
    pub(super) micro_batch: usize,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Uncompressed {
    pub(super) perplexity: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step.map_or_else(String::new, |step| format!(", step {step}"));
        writeln!(f, "model         {}{step}", self.model.display())?;
        writeln!(
            f,
            "text          {} tokens, sequences of {}, one every {}, {} in a micro-batch, {:.1} s",
            self.tokens, self.sequence, self.stride, self.micro_batch, self.seconds
        )?;
        let (with, without) = (self.perplexity, self.uncompressed.perplexity);
        if let Some(sums) = &self.all_reduce {
            writeln!(f, "{sums}")?;
        }
        if !self.boundaries.is_empty() || with != without {
            let difference = (with / without - 1.0) * 100.0;
            writeln!(f, "compressed    perplexity {with:.4} ({difference:+.3} %)")?;
        }
        write!(f, "uncompressed  perplexity {without:.4}")?;
        if self.boundaries.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{:<10}{:>13}{:>16}  codec", "boundary", "bits/element", "rel. sq. error")?;
        let figures = self.bits_per_element.iter().zip(&self.rel_sq_error);
        let messages = self.messages.iter().zip(&self.raw_messages);
        let rows = self.boundaries.iter().zip(&self.codec).zip(figures).zip(messages);
        for (((before, codec), (bits, error)), (messages, raw)) in rows {
            write!(f, "\n{before:<10}{bits:>13.3}{error:>16.3e}  {codec}")?;
            if *raw > 0 {
                write!(f, " ({raw} of {messages} messages went raw)")?;
            }
        }
        Ok(())
    }
}
