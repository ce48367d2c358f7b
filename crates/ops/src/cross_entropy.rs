use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::{Int, Tensor};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::HostFn;
use crate::extension::FusedOps;
use crate::kernel::cross_entropy::{self as kernel, RowLoss};
use crate::profile::{Operator, Pass, time};
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, from_values, indices, into_values, matrix_shape, record, register,
    rounded, values, wide,
};

/// Softmax cross-entropy of each row, in nats: `logits: [rows, vocab]`, `targets: [rows]` to `[rows]`.
///
/// The result is `f32` also for logits in `bf16`. No probabilities are kept: the backward pass writes the gradient over the logits, unless somebody else still holds
/// them. Multiply the result by weights or a mask before summing it; a row whose gradient is 0 costs nothing.
///
/// # Panics
/// When the counts differ or a target is no column.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let targets = indices("cross_entropy", targets, logits.dims()[1]);
    Tensor::from_dispatch(Dispatch::cross_entropy(logits.into_dispatch(), targets))
}

/// [`cross_entropy`] of logits whose columns are shared by several ranks: `logits: [rows, columns]` are those of the
/// vocabulary's columns from `first` on, `targets` are columns of the whole vocabulary of `vocab`.
///
/// What a rank's columns add to a row's loss comes down to three numbers: their largest logit, the sum of their exponentials
/// beside it, and the target's logit. `gather` turns the `3 * rows` numbers of this rank into those of all ranks, one behind the
/// other. They are joined in this order, so every rank has the same bits. The backward pass needs nobody else.
///
/// # Panics
/// When the counts differ, a target is no column, or `gather` gives no multiple of `3 * rows` numbers.
pub fn cross_entropy_of_columns(
    logits: Tensor<2>,
    first: usize,
    targets: Tensor<1, Int>,
    vocab: usize,
    gather: HostFn,
) -> Tensor<1> {
    let targets = indices("cross_entropy", targets, vocab);
    // One in front of them wraps around, so that it is none of them as one behind them is.
    let targets = targets.into_iter().map(|target| target.wrapping_sub(first as u32)).collect();
    Tensor::from_dispatch(Dispatch::cross_entropy_of_columns(logits.into_dispatch(), targets, gather))
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    logits: FlexTensor,
    targets: Arc<Vec<u32>>,
    losses: Arc<Vec<RowLoss>>,
}

pub(crate) fn forward(logits: FlexTensor, targets: Vec<u32>) -> (FlexTensor, State) {
    lost(logits, targets, kernel::forward)
}

pub(crate) fn forward_of_columns(
    logits: FlexTensor,
    targets: Vec<u32>,
    gather: &HostFn,
) -> (FlexTensor, State) {
    lost(logits, targets, |logits, width, targets| {
        kernel::join(&gather.call(kernel::shares(logits, width, targets)), targets.len())
    })
}

/// What `losses` makes of the values of the logits, the length of a row and the targets.
fn lost(
    logits: FlexTensor,
    targets: Vec<u32>,
    losses: impl FnOnce(&[f32], usize, &[u32]) -> Vec<RowLoss>,
) -> (FlexTensor, State) {
    let [rows, width] = matrix_shape(&logits);
    assert_eq!(targets.len(), rows, "cross_entropy: targets for the rows of [{rows}, {width}]");
    let _timer = time(Operator::CrossEntropy, Pass::Forward);
    let logits = contiguous(logits);
    let losses = losses(values(&wide(&logits)), width, &targets);
    let out = from_values(losses.iter().map(|row| row.loss).collect(), [rows]);
    (out, State { logits, targets: Arc::new(targets), losses: Arc::new(losses) })
}

pub(crate) fn recorded<C: CheckpointStrategy>(logits: TrackedTensor, targets: Vec<u32>) -> TrackedTensor {
    let (logits, node) = logits.into_parts();
    let (out, state) = forward(logits, targets);
    record::<C, _, 1>(CrossEntropy, [node], state, out)
}

pub(crate) fn recorded_of_columns<C: CheckpointStrategy>(
    logits: TrackedTensor,
    targets: Vec<u32>,
    gather: &HostFn,
) -> TrackedTensor {
    let (logits, node) = logits.into_parts();
    let (out, state) = forward_of_columns(logits, targets, gather);
    record::<C, _, 1>(CrossEntropy, [node], state, out)
}

#[derive(Debug)]
struct CrossEntropy;

impl Backward<Flex, 1> for CrossEntropy {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let timer = time(Operator::CrossEntropy, Pass::Backward);
        let Ops { parents, node, state: State { logits, targets, losses } } = ops;
        let g = contiguous(grads.consume::<Flex>(&node));
        let (shape, dtype) = (matrix_shape(&logits), logits.dtype());
        let mut gradient = into_values(logits);
        kernel::backward(&mut gradient, shape[1], &targets, &losses, values(&g));
        let gradient = rounded(gradient, shape, dtype);
        drop(timer);
        register(grads, Ops { parents, node, state: () }, [Some(gradient)]);
    }
}
