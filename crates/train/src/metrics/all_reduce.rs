//! What the ranks of a stage send each other.

use serde::{Deserialize, Serialize};

use super::event::Direction;
use super::float;

/// What the ranks of one stage have sent each other in passes of one direction, counted by all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllReduceReport {
    /// The stage.
    pub stage: usize,
    /// Its ranks.
    pub ranks: usize,
    /// Activations, or their gradients.
    pub direction: Direction,
    /// Tensors added up.
    pub calls: u64,
    /// Values of those tensors.
    pub elements: u64,
    /// Bytes that were sent for them.
    pub bytes: u64,
    /// Bytes that would have been sent with every value as f32.
    pub f32_bytes: u64,
}

impl AllReduceReport {
    /// Bits a value took each time it was sent; `None` before any was.
    pub fn bits_per_element(&self) -> Option<f64> {
        (self.f32_bytes > 0).then(|| self.bytes as f64 * 32.0 / self.f32_bytes as f64)
    }

    /// What was added since `earlier`, or everything if the stage started anew in between.
    pub(super) fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier.filter(|earlier| earlier.bytes <= self.bytes) else { return *self };
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            elements: self.elements.saturating_sub(earlier.elements),
            bytes: self.bytes - earlier.bytes,
            f32_bytes: self.f32_bytes.saturating_sub(earlier.f32_bytes),
            ..*self
        }
    }

    /// Identifies it among those of all stages, in display order.
    pub(super) fn key(&self) -> AllReduceKey {
        (self.stage, self.direction)
    }
}

/// Stage and direction.
pub(super) type AllReduceKey = (usize, Direction);

/// What the ranks of one stage have added up at one site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    /// The stage.
    pub stage: usize,
    /// Activations, or their gradients.
    pub direction: Direction,
    /// `embedding`, or `head`; or `attention` or `mlp`, the layer that the sum is behind, in front of on the way back.
    pub site: String,
    /// The block that a layer is in.
    pub block: Option<usize>,
    /// Tensors added up.
    pub calls: u64,
    /// Bytes that all ranks together sent for that.
    pub bytes: u64,
    /// Bits a value took each time it was sent.
    #[serde(with = "float")]
    pub bits_per_element: f64,
    /// Root of the mean square of what ranks add.
    #[serde(with = "float")]
    pub partial_rms: f64,
    /// The same of the sums.
    #[serde(with = "float")]
    pub sum_rms: f64,
}
