//! The two passes over a text.

use super::ranks::Ranks;
use super::sharing::Groups;
use super::{Boundary, EvaluateError};
use crate::data::MicroBatch;
use crate::model::Architecture;
use crate::pipeline::{Forwarded, HostTensor};
use crate::tensor_parallel::SiteStatistics;

/// The parts of a model with the boundaries between them.
#[derive(Debug)]
pub struct Pipeline {
    parts: Vec<Ranks>,
    boundaries: Vec<Boundary>,
    groups: Groups,
}

/// What was found out about a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// `exp` of the mean loss, the activations compressed at every boundary and in the sums of ranks.
    pub compressed: f64,
    /// The same without codecs, and with exact sums.
    pub uncompressed: f64,
    /// Tokens predicted.
    pub tokens: u64,
}

impl Pipeline {
    /// Joins `parts`, whose ranks are in `groups`, with a boundary between any two.
    ///
    /// # Panics
    /// When the boundaries are not one fewer than the parts.
    pub(super) fn new(parts: Vec<Ranks>, boundaries: Vec<Boundary>, groups: Groups) -> Self {
        assert_eq!(parts.len(), boundaries.len() + 1, "a boundary between any two parts");
        Self { parts, boundaries, groups }
    }

    /// The boundaries, with what has passed them.
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// What the ranks that share the model have added up so far, all of them together, by site; nothing if nobody shares it.
    pub fn sums(&self) -> Vec<SiteStatistics> {
        self.groups.statistics()
    }

    /// The model.
    ///
    /// # Panics
    /// Never: there is a first part.
    pub fn architecture(&self) -> &Architecture {
        self.parts[0].architecture()
    }

    /// The parts, in order.
    pub(crate) fn parts(&self) -> &[Ranks] {
        &self.parts
    }

    /// The parts, and what is between them.
    pub(crate) fn parts_and_boundaries(&mut self) -> (&[Ranks], &mut [Boundary]) {
        (&self.parts, &mut self.boundaries)
    }

    /// Evaluates `batches`; calls `done` after each of them.
    ///
    /// # Errors
    /// An activation or a loss that is not finite, an activation that a codec cannot take, ranks that cannot add up.
    pub fn evaluate(
        &mut self,
        batches: impl Iterator<Item = MicroBatch>,
        mut done: impl FnMut(),
    ) -> Result<Perplexity, EvaluateError> {
        let (mut compressed, mut uncompressed, mut tokens) = (0.0, 0.0, 0);
        for (index, batch) in batches.enumerate() {
            // First, so that a value that is not finite is told by its boundary.
            let loss = self.loss(index, &batch, Boundary::pass)?;
            compressed += loss;
            uncompressed += if self.is_exact() { loss } else { self.exact_loss(index, &batch)? };
            tokens += batch.trained() as u64;
            done();
        }
        let perplexity = |loss: f64| (loss / tokens as f64).exp();
        Ok(Perplexity { compressed: perplexity(compressed), uncompressed: perplexity(uncompressed), tokens })
    }

    fn is_exact(&self) -> bool {
        self.boundaries.is_empty() && self.groups.are_exact()
    }

    fn exact_loss(&mut self, index: usize, batch: &MicroBatch) -> Result<f64, EvaluateError> {
        self.groups.set_exact(true);
        let loss = self.loss(index, batch, |_, h, _| Ok(h));
        self.groups.set_exact(false);
        loss
    }

    /// Sum of the losses of micro-batch `index`, with `cross` taking an activation over a boundary.
    fn loss(
        &mut self,
        index: usize,
        batch: &MicroBatch,
        cross: impl Fn(&mut Boundary, HostTensor, usize) -> Result<HostTensor, EvaluateError>,
    ) -> Result<f64, EvaluateError> {
        let mut boundaries = self.boundaries.iter_mut();
        let mut entered = None;
        for part in &self.parts {
            entered = match (part.evaluate(batch, entered)?, boundaries.next()) {
                (Forwarded::Hidden(h), Some(boundary)) => Some(cross(boundary, h, index)?),
                (Forwarded::Loss(sum), None) => return checked(index, sum, batch),
                _ => unreachable!("the last part, and no other, ends with the head"),
            };
        }
        unreachable!("there is a last part")
    }
}

/// `sum` if the batch has a perplexity.
fn checked(micro_batch: usize, sum: f64, batch: &MicroBatch) -> Result<f64, EvaluateError> {
    let loss = sum / batch.trained() as f64;
    if loss.exp().is_finite() { Ok(sum) } else { Err(EvaluateError::Loss { micro_batch, loss }) }
}
