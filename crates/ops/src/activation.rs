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
    FlexTensor, TrackedTensor, contiguous, from_values, into_values, matrix_shape, record, register, values,
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
    let mut out = vec![0.0; values(&inputs[0]).len()];
    map(kernel::SwiGlu, inputs.each_ref().map(values), [&mut out]);
    (from_values(out, matrix_shape(&inputs[0])), inputs)
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
        let shape = matrix_shape(&ops.state[0]);
        let mut d_up = into_values(grads.consume::<Flex>(&ops.node));
        let mut d_gate = vec![0.0; d_up.len()];
        map(kernel::SwiGluBackward, ops.state.each_ref().map(values), [&mut d_up, &mut d_gate]);
        drop(timer);
        register(grads, ops, [d_gate, d_up].map(|gradient| Some(from_values(gradient, shape))));
    }
}

pub(crate) fn gelu_forward(x: FlexTensor) -> (FlexTensor, FlexTensor) {
    let _timer = time(Operator::Activation, Pass::Forward);
    let x = contiguous(x);
    let mut out = vec![0.0; values(&x).len()];
    map(kernel::Gelu, [values(&x)], [&mut out]);
    (from_values(out, matrix_shape(&x)), x)
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
        let shape = matrix_shape(&ops.state);
        let mut dx = into_values(grads.consume::<Flex>(&ops.node));
        map(kernel::GeluBackward, [values(&ops.state)], [&mut dx]);
        drop(timer);
        register(grads, ops, [Some(from_values(dx, shape))]);
    }
}
