use burn::backend::{Dispatch, Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::extension::FusedOps;
use crate::kernel::activation as kernel;
use crate::kernel::lanes::map;
use crate::profile::{Operator, Pass, time};
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, into_values, matrix_shape, record, register, rounded, values, wide,
};

/// SwiGLU (Shazeer, 2020): `silu(gate) up`, element by element, with `silu(x) = x / (1 + e^-x)`.
///
/// # Panics
/// When the shapes differ.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::swiglu(gate.into_dispatch(), up.into_dispatch()))
}

/// GPT-2's GELU (Hendrycks and Gimpel, 2016): `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
pub fn gelu_tanh(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gelu_tanh(x.into_dispatch()))
}

pub(crate) fn swiglu_forward(gate: FlexTensor, up: FlexTensor) -> (FlexTensor, [FlexTensor; 2]) {
    assert_eq!(gate.shape(), up.shape(), "swiglu: the shapes of gate and up");
    let _timer = time(Operator::Activation, Pass::Forward);
    let inputs = [contiguous(gate), contiguous(up)];
    let (shape, dtype) = (matrix_shape(&inputs[0]), inputs[0].dtype());
    let mut out = vec![0.0; shape[0] * shape[1]];
    map(kernel::SwiGlu, inputs.each_ref().map(wide).each_ref().map(values), [&mut out]);
    (rounded(out, shape, dtype), inputs)
}

pub(crate) fn swiglu_recorded<C: CheckpointStrategy>(
    gate: TrackedTensor,
    up: TrackedTensor,
) -> TrackedTensor {
    let ((gate, gate_node), (up, up_node)) = (gate.into_parts(), up.into_parts());
    let (out, state) = swiglu_forward(gate, up);
    record::<C, _, 2>(SwiGlu, [gate_node, up_node], state, out)
}

#[derive(Debug)]
struct SwiGlu;

impl Backward<Flex, 2> for SwiGlu {
    /// Gate and up.
    type State = [FlexTensor; 2];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let timer = time(Operator::Activation, Pass::Backward);
        let (shape, dtype) = (matrix_shape(&ops.state[0]), ops.state[0].dtype());
        let mut d_up = into_values(grads.consume::<Flex>(&ops.node));
        let mut d_gate = vec![0.0; d_up.len()];
        let inputs = ops.state.each_ref().map(wide);
        map(kernel::SwiGluBackward, inputs.each_ref().map(values), [&mut d_up, &mut d_gate]);
        let gradients = [d_gate, d_up].map(|gradient| Some(rounded(gradient, shape, dtype)));
        drop(timer);
        register(grads, ops, gradients);
    }
}

pub(crate) fn gelu_forward(x: FlexTensor) -> (FlexTensor, FlexTensor) {
    let _timer = time(Operator::Activation, Pass::Forward);
    let x = contiguous(x);
    let shape = matrix_shape(&x);
    let mut out = vec![0.0; shape[0] * shape[1]];
    map(kernel::Gelu, [values(&wide(&x))], [&mut out]);
    (rounded(out, shape, x.dtype()), x)
}

pub(crate) fn gelu_recorded<C: CheckpointStrategy>(x: TrackedTensor) -> TrackedTensor {
    let (x, node) = x.into_parts();
    let (out, state) = gelu_forward(x);
    record::<C, _, 1>(Gelu, [node], state, out)
}

#[derive(Debug)]
struct Gelu;

impl Backward<Flex, 1> for Gelu {
    /// The input.
    type State = FlexTensor;

    fn backward(self, ops: Ops<FlexTensor, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let timer = time(Operator::Activation, Pass::Backward);
        let (shape, dtype) = (matrix_shape(&ops.state), ops.state.dtype());
        let mut dx = into_values(grads.consume::<Flex>(&ops.node));
        map(kernel::GeluBackward, [values(&wide(&ops.state))], [&mut dx]);
        let dx = rounded(dx, shape, dtype);
        drop(timer);
        register(grads, ops, [Some(dx)]);
    }
}
