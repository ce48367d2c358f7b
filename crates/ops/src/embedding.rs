use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::{Int, Tensor};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::GradientSum;
use crate::extension::FusedOps;
use crate::kernel::embedding as kernel;
use crate::kernel::product::Output;
use crate::profile::{Operator, Pass, time};
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, from_values, indices, matrix_shape, record, register, values,
};

/// The rows of a matrix that `ids` name: `weight: [vocab, width]`, `ids: [rows]` to `[rows, width]`.
///
/// With a `sum` the weight's gradient is added to it, row by row, and not registered with Burn.
///
/// # Panics
/// When an id is no row.
pub fn embedding(weight: Tensor<2>, ids: Tensor<1, Int>, sum: Option<&GradientSum>) -> Tensor<2> {
    let ids = indices("embedding", ids, weight.dims()[0]);
    Tensor::from_dispatch(Dispatch::embedding(weight.into_dispatch(), ids, sum.cloned()))
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    ids: Arc<Vec<u32>>,
    /// Of the weight.
    shape: [usize; 2],
    sum: Option<GradientSum>,
}

pub(crate) fn forward(weight: FlexTensor, ids: Vec<u32>, sum: Option<GradientSum>) -> (FlexTensor, State) {
    let _timer = time(Operator::Embedding, Pass::Forward);
    let (shape, weight) = (matrix_shape(&weight), contiguous(weight));
    let out = kernel::gather(values(&weight), shape[1], &ids);
    (from_values(out, [ids.len(), shape[1]]), State { ids: Arc::new(ids), shape, sum })
}

pub(crate) fn recorded<C: CheckpointStrategy>(
    weight: TrackedTensor,
    ids: Vec<u32>,
    sum: Option<GradientSum>,
) -> TrackedTensor {
    let (weight, node) = weight.into_parts();
    let (out, state) = forward(weight, ids, sum);
    record::<C, _, 1>(Embedding, [node], state, out)
}

#[derive(Debug)]
struct Embedding;

impl Backward<Flex, 1> for Embedding {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let timer = time(Operator::Embedding, Pass::Backward);
        let g = contiguous(grads.consume::<Flex>(&ops.node));
        let State { ids, shape, sum } = &ops.state;
        let [vocab, width] = *shape;
        let gradient = if let Some(sum) = sum {
            sum.update(vocab * width, |sum, mode| {
                if mode == Output::Replace {
                    kernel::clear(sum);
                }
                kernel::scatter(sum, width, ids, values(&g));
            });
            None
        } else {
            let mut gradient = vec![0.0; vocab * width];
            kernel::scatter(&mut gradient, width, ids, values(&g));
            Some(from_values(gradient, *shape))
        };
        drop(timer);
        register(grads, ops, [gradient]);
    }
}
