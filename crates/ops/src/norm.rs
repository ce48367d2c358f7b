use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::extension::FusedOps;
use crate::kernel::norm::{self as kernel, Learned, RowStats};
use crate::profile::{Operator, Pass, time};
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, from_values, into_values, matrix_shape, record, register, rounded,
    values, wide,
};

/// RMSNorm (Zhang and Sennrich, 2019): `x / sqrt(mean(x^2) + eps) weight` of each row; `x: [rows, width]`,
/// `weight: [width]`. The norm of each head is that of rows of `head_dim`.
///
/// # Panics
/// When the shapes do not fit each other.
pub fn rms_norm(x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), weight.into_dispatch(), eps))
}

/// LayerNorm (Ba et al., 2016): `(x - mean(x)) / sqrt(var(x) + eps) weight + bias` of each row; `x: [rows, width]`,
/// `weight`, `bias: [width]`. The variance is the mean square distance, not Bessel's.
///
/// # Panics
/// When the shapes do not fit each other.
pub fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, eps: f32) -> Tensor<2> {
    let [weight, bias] = [weight, bias].map(Tensor::into_dispatch);
    Tensor::from_dispatch(Dispatch::layer_norm(x.into_dispatch(), weight, bias, eps))
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    x: FlexTensor,
    weight: FlexTensor,
    bias: Option<FlexTensor>,
    stats: Arc<Vec<RowStats>>,
}

impl State {
    fn learned(&self) -> Learned<'_> {
        Learned { weight: values(&self.weight), bias: self.bias.as_ref().map(values) }
    }
}

pub(crate) fn forward(
    x: FlexTensor,
    weight: FlexTensor,
    bias: Option<FlexTensor>,
    eps: f32,
) -> (FlexTensor, State) {
    let [rows, width] = matrix_shape(&x);
    let _timer = time(Operator::Norm, Pass::Forward);
    let in_full = |vector| wide(&contiguous(vector));
    let (x, weight, bias) = (contiguous(x), in_full(weight), bias.map(in_full));
    let (wide_x, dtype) = (wide(&x), x.dtype());
    let mut state = State { x, weight, bias, stats: Arc::default() };
    let learned = state.learned();
    let lengths = [Some(learned.weight), learned.bias].into_iter().flatten().map(<[f32]>::len);
    for len in lengths {
        assert!(len == width && width > 0, "norm: x is [{rows}, {width}], a parameter has {len} values");
    }
    let mut y = vec![0.0; rows * width];
    let of_rows = kernel::forward(values(&wide_x), learned, eps, &mut y);
    state.stats = Arc::new(of_rows);
    (rounded(y, [rows, width], dtype), state)
}

pub(crate) fn recorded_rms<C: CheckpointStrategy>(
    x: TrackedTensor,
    weight: TrackedTensor,
    eps: f32,
) -> TrackedTensor {
    let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
    let (out, state) = forward(x, weight, None, eps);
    record::<C, _, 2>(Norm, [x_node, weight_node], state, out)
}

pub(crate) fn recorded_layer<C: CheckpointStrategy>(
    x: TrackedTensor,
    weight: TrackedTensor,
    bias: TrackedTensor,
    eps: f32,
) -> TrackedTensor {
    let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
    let (bias, bias_node) = bias.into_parts();
    let (out, state) = forward(x, weight, Some(bias), eps);
    record::<C, _, 3>(Norm, [x_node, weight_node, bias_node], state, out)
}

#[derive(Debug)]
struct Norm;

impl Norm {
    fn gradients(state: &State, g: FlexTensor) -> (FlexTensor, FlexTensor, Option<FlexTensor>) {
        let _timer = time(Operator::Norm, Pass::Backward);
        let shape = matrix_shape(&g);
        let mut dx = into_values(g);
        let (dw, db) = kernel::backward(values(&wide(&state.x)), state.learned(), &state.stats, &mut dx);
        let vector = |v: Vec<f32>| from_values(v, [shape[1]]);
        (rounded(dx, shape, state.x.dtype()), vector(dw), db.map(vector))
    }
}

impl Backward<Flex, 2> for Norm {
    type State = State;

    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (dx, dw, _) = Self::gradients(&ops.state, grads.consume::<Flex>(&ops.node));
        register(grads, ops, [Some(dx), Some(dw)]);
    }
}

impl Backward<Flex, 3> for Norm {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (dx, dw, db) = Self::gradients(&ops.state, grads.consume::<Flex>(&ops.node));
        register(grads, ops, [Some(dx), Some(dw), db]);
    }
}
