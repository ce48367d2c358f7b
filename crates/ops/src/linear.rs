use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::GradientSum;
use crate::extension::FusedOps;
use crate::kernel::columns;
use crate::kernel::product::{Matrix, MatrixMut, Output, Threads, new_product, product};
use crate::profile::{Operator, Pass, time};
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, from_values, into_values, matrix_shape, record, register, rounded,
    values, wide,
};

/// How a weight is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightLayout {
    /// `[in, out]`, GPT-2's `Conv1D`.
    InOut,
    /// `[out, in]`, everyone else's `Linear`.
    OutIn,
}

/// `y = x W (+ b)`: `x: [rows, in]`, `weight` by its layout, `bias: [out]` to `[rows, out]`.
///
/// The weight's gradient has the weight's layout, so that no transposed copy of it is ever made. With a `sum` it is added
/// to that and not registered with Burn. It is `f32`, as it will be summed. Nothing is computed for inputs that are not tracked.
///
/// # Panics
/// When the shapes do not fit each other.
pub fn linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    layout: WeightLayout,
    sum: Option<&GradientSum>,
) -> Tensor<2> {
    let (x, weight, sum) = (x.into_dispatch(), weight.into_dispatch(), sum.cloned());
    Tensor::from_dispatch(match bias {
        Some(bias) => Dispatch::linear_biased(x, weight, bias.into_dispatch(), layout, sum),
        None => Dispatch::linear(x, weight, layout, sum),
    })
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The inputs, contiguous.
    x: FlexTensor,
    weight: FlexTensor,
    layout: WeightLayout,
    sum: Option<GradientSum>,
}

/// A stored weight as `[in, out]`, whatever its layout.
fn oriented(weight: &FlexTensor, layout: WeightLayout) -> Matrix<'_> {
    let stored = matrix(weight);
    if layout == WeightLayout::InOut { stored } else { stored.transposed() }
}

fn matrix(tensor: &FlexTensor) -> Matrix<'_> {
    let [rows, columns] = matrix_shape(tensor);
    Matrix::new(values(tensor), [rows, columns], columns)
}

pub(crate) fn forward(
    x: FlexTensor,
    weight: FlexTensor,
    bias: Option<FlexTensor>,
    layout: WeightLayout,
    sum: Option<GradientSum>,
) -> (FlexTensor, State) {
    let ([rows, fan_in], stored) = (matrix_shape(&x), matrix_shape(&weight));
    let [from, to] = if layout == WeightLayout::InOut { stored } else { [stored[1], stored[0]] };
    assert_eq!(from, fan_in, "linear: x is [{rows}, {fan_in}], the weight {stored:?} in layout {layout:?}");
    let _timer = time(Operator::Linear, Pass::Forward);
    let state = State { x: contiguous(x), weight: contiguous(weight), layout, sum };
    let (x, weight) = (wide(&state.x), wide(&state.weight));
    let operands = [matrix(&x), oriented(&weight, layout)];
    let out = match bias {
        None => new_product(operands, Threads::Pool),
        Some(bias) => {
            let bias = into_values(bias);
            assert_eq!(bias.len(), to, "linear: the bias of {to} outputs");
            let mut out = bias.repeat(rows);
            let sum = MatrixMut::new(&mut out, [rows, to], to);
            product(sum, Output::Add, 1.0, operands, Threads::Pool);
            out
        }
    };
    (rounded(out, [rows, to], state.x.dtype()), state)
}

pub(crate) fn recorded<C: CheckpointStrategy>(
    x: TrackedTensor,
    weight: TrackedTensor,
    layout: WeightLayout,
    sum: Option<GradientSum>,
) -> TrackedTensor {
    let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
    let (out, state) = forward(x, weight, None, layout, sum);
    record::<C, _, 2>(Linear, [x_node, weight_node], state, out)
}

pub(crate) fn recorded_biased<C: CheckpointStrategy>(
    x: TrackedTensor,
    weight: TrackedTensor,
    bias: TrackedTensor,
    layout: WeightLayout,
    sum: Option<GradientSum>,
) -> TrackedTensor {
    let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
    let (bias, bias_node) = bias.into_parts();
    let (out, state) = forward(x, weight, Some(bias), layout, sum);
    record::<C, _, 3>(Linear, [x_node, weight_node, bias_node], state, out)
}

#[derive(Debug)]
struct Linear;

impl Linear {
    /// Of the input, the weight (unless it was added to a sum) and the bias, where they are tracked.
    fn gradients(state: &State, g: FlexTensor, tracked: [bool; 3]) -> [Option<FlexTensor>; 3] {
        let _timer = time(Operator::Linear, Pass::Backward);
        let g = wide(&contiguous(g));
        let (upstream, stored) = (matrix(&g), matrix_shape(&state.weight));
        let dx = || {
            let weight = wide(&state.weight);
            let operands = [upstream, oriented(&weight, state.layout).transposed()];
            rounded(new_product(operands, Threads::Pool), matrix_shape(&state.x), state.x.dtype())
        };
        let dw = || {
            let x = wide(&state.x);
            let operands = match state.layout {
                WeightLayout::InOut => [matrix(&x).transposed(), upstream],
                WeightLayout::OutIn => [upstream.transposed(), matrix(&x)],
            };
            let Some(sum) = &state.sum else {
                return Some(from_values(new_product(operands, Threads::Pool), stored));
            };
            sum.update(stored[0] * stored[1], |sum, mode| {
                product(MatrixMut::new(sum, stored, stored[1]), mode, 1.0, operands, Threads::Pool);
            });
            None
        };
        let width = matrix_shape(&g)[1];
        let db = || from_values(columns::sums(values(&g), width), [width]);
        [tracked[0].then(dx), tracked[1].then(dw).flatten(), tracked[2].then(db)]
    }
}

impl Backward<Flex, 2> for Linear {
    type State = State;

    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let g = grads.consume::<Flex>(&ops.node);
        let [x, weight] = ops.parents.each_ref().map(Option::is_some);
        let [dx, dw, _] = Self::gradients(&ops.state, g, [x, weight, false]);
        register(grads, ops, [dx, dw]);
    }
}

impl Backward<Flex, 3> for Linear {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let g = grads.consume::<Flex>(&ops.node);
        let gradients = Self::gradients(&ops.state, g, ops.parents.each_ref().map(Option::is_some));
        register(grads, ops, gradients);
    }
}
