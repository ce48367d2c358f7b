//! The two passes over a text.

use burn::tensor::Device;

use super::{Boundary, EvaluateError};
use crate::data::MicroBatch;
use crate::model::{Architecture, Part};
use crate::pipeline::{Compute, Forwarded, HostTensor};

/// The parts of a model with the boundaries between them.
#[derive(Debug)]
pub struct Pipeline {
    parts: Vec<Compute>,
    boundaries: Vec<Boundary>,
}

/// What was found out about a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// `exp` of the mean loss, the activations compressed at every boundary.
    pub compressed: f64,
    /// The same without codecs.
    pub uncompressed: f64,
    /// Tokens predicted.
    pub tokens: u64,
}

impl Pipeline {
    /// Joins `parts`, whose parameters are on `device` (without autodiff), with a boundary between any two.
    ///
    /// # Panics
    /// When the boundaries are not one fewer than the parts.
    pub(super) fn new(parts: Vec<Part>, boundaries: Vec<Boundary>, device: &Device) -> Self {
        assert_eq!(parts.len(), boundaries.len() + 1, "a boundary between any two parts");
        let parts = parts.into_iter().map(|part| Compute::new(part, device.clone())).collect();
        Self { parts, boundaries }
    }

    /// The boundaries, with what has passed them.
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// The model.
    ///
    /// # Panics
    /// Never: there is a first part.
    pub fn architecture(&self) -> &Architecture {
        self.parts[0].part().architecture()
    }

    /// The parts, in order.
    pub(crate) fn parts(&self) -> &[Compute] {
        &self.parts
    }

    /// The parts, and what is between them.
    pub(crate) fn parts_and_boundaries(&mut self) -> (&[Compute], &mut [Boundary]) {
        (&self.parts, &mut self.boundaries)
    }

    /// Evaluates `batches`; calls `done` after each of them.
    ///
    /// # Errors
    /// An activation or a loss that is not finite, an activation that a codec cannot take.
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
            uncompressed +=
                if self.boundaries.is_empty() { loss } else { self.loss(index, &batch, |_, h, _| Ok(h))? };
            tokens += batch.trained() as u64;
            done();
        }
        let perplexity = |loss: f64| (loss / tokens as f64).exp();
        Ok(Perplexity { compressed: perplexity(compressed), uncompressed: perplexity(uncompressed), tokens })
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
            entered = match (part.evaluate(batch, entered), boundaries.next()) {
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
