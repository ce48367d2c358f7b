//! The recorded forward pass of a run of units, and the gradients it gives.

use std::ops::Range;

use burn::tensor::Tensor;

use super::host::loss_of;
use crate::data::MicroBatch;
use crate::model::{Activation, GradientSums, Leaves, Part};

/// A run of units between its forward and its backward pass.
#[derive(Debug)]
pub(super) struct Graph {
    leaves: Leaves,
    entered: Option<Tensor<3>>,
    left: Left,
}

/// What came out of the last of the units.
#[derive(Debug)]
enum Left {
    Hidden(Tensor<3>),
    Loss(Tensor<1>),
}

/// What the head's logits are for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objective<'a> {
    /// Has the targets.
    pub(super) batch: &'a MicroBatch,
    /// What one token's loss counts.
    pub(super) weight: f32,
}

/// What a recorded pass gives to those who go on with it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one call")]
pub(super) enum Recorded {
    /// The residual stream, outside the graph.
    Hidden(Tensor<3>),
    /// Sum of the losses of the targets that count, in nats.
    Loss(f64),
}

impl Graph {
    /// Runs `units` of `part` (positions in it) on `entered`: ids, or the residual stream from outside the graph. The
    /// backward pass will add to `sums`.
    ///
    /// # Panics
    /// When the head is among the units and there is no objective.
    pub(super) fn record(
        part: &Part,
        units: Range<usize>,
        entered: Activation,
        objective: Option<Objective<'_>>,
        sums: &GradientSums,
    ) -> (Self, Recorded) {
        let leaves = part.leaves_of(units.clone(), sums);
        let (entered, input) = match entered {
            Activation::Hidden(h) => {
                let h = Tensor::from_inner(h).require_grad();
                (Some(h.clone()), Activation::Hidden(h))
            }
            ids => (None, ids),
        };
        let (left, recorded) = match part.forward_units(units, &leaves, input) {
            Activation::Logits(logits) => {
                let Objective { batch, weight } = objective.expect("the head has targets");
                let (loss, sum) = loss_of(part, logits, batch);
                (Left::Loss(loss * weight), Recorded::Loss(sum))
            }
            Activation::Hidden(h) => {
                let inner = h.clone().inner();
                (Left::Hidden(h), Recorded::Hidden(inner))
            }
            Activation::Ids(_) => unreachable!("no unit gives token ids"),
        };
        (Self { leaves, entered, left }, recorded)
    }

    /// Adds the parameters' gradients to their sums (frozen ones have none) and gives that of what entered. `upstream` is the gradient of the
    /// residual stream that left, `None` behind the loss.
    pub(super) fn backward(self, upstream: Option<Tensor<3>>) -> Option<Tensor<3>> {
        let Self { leaves, entered, left } = self;
        if entered.is_none() && !leaves.trains() {
            return None;
        }
        let mut tape = match (left, upstream) {
            (Left::Loss(loss), None) => loss.backward(),
            // Burn's backward takes no gradient; the product's derivative is that gradient, to the bit.
            (Left::Hidden(h), Some(upstream)) => (h * Tensor::from_inner(upstream)).sum().backward(),
            _ => unreachable!("the loss has no gradient above it, and everything else does"),
        };
        leaves.add_gradients(&mut tape);
        entered.map(|h| h.grad_remove(&mut tape).expect("the units pass a gradient through"))
    }
}
