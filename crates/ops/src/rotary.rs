use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::extension::FusedOps;
use crate::kernel::rotary::{Angles, Turn, rotate};
use crate::profile::{Operator, Pass, time};
use crate::tensor::{FlexTensor, TrackedTensor, into_values, matrix_shape, record, register, rounded};

/// Cosines and sines of the rotary angles, `[positions, head_dim / 2]`.
#[derive(Clone, Debug)]
pub struct RotaryTable {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl RotaryTable {
    /// Position `p` turns pair `j` by `p frequencies[j]` radians; the results are multiplied by `scale` (1, but for some
    /// ways of stretching a context).
    ///
    /// # Panics
    /// Without a frequency.
    pub fn new(frequencies: &[f64], positions: usize, scale: f64) -> Self {
        assert!(!frequencies.is_empty(), "rotary: a head has at least one pair");
        let angles = (0..positions).flat_map(|p| frequencies.iter().map(move |f| p as f64 * f));
        let (cos, sin) =
            angles.map(|angle| ((angle.cos() * scale) as f32, (angle.sin() * scale) as f32)).unzip();
        Self { cos, sin, half: frequencies.len() }
    }

    /// How many positions it has.
    pub fn positions(&self) -> usize {
        self.cos.len() / self.half
    }
}

/// Rotary position embedding (Su et al., 2021) in the half-split layout of Hugging Face files: each pair
/// `(x_j, x_{j + dim/2})` of each head is turned by its position's angle.
///
/// `x: [samples * tokens, heads * dim]`; the first token of every sample has position `start`.
///
/// # Panics
/// When the rows are no whole samples or heads, or the table ends before the last position.
pub fn rotary(x: Tensor<2>, table: &Arc<RotaryTable>, tokens: usize, start: usize) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rotary(x.into_dispatch(), Arc::clone(table), tokens, start))
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    table: Arc<RotaryTable>,
    tokens: usize,
    start: usize,
}

impl State {
    fn turn(&self, x: FlexTensor, turn: Turn) -> FlexTensor {
        let (shape, dtype) = (matrix_shape(&x), x.dtype());
        let RotaryTable { cos, sin, half } = &*self.table;
        let angles = Angles { cos, sin, half: *half, tokens: self.tokens, start: self.start };
        let mut values = into_values(x);
        rotate(&mut values, shape[1], angles, turn);
        rounded(values, shape, dtype)
    }
}

pub(crate) fn forward(
    x: FlexTensor,
    table: Arc<RotaryTable>,
    tokens: usize,
    start: usize,
) -> (FlexTensor, State) {
    let ([rows, width], dim) = (matrix_shape(&x), 2 * table.half);
    assert!(tokens > 0 && rows % tokens == 0, "rotary: {rows} rows are no samples of {tokens} tokens");
    assert!(width > 0 && width % dim == 0, "rotary: {width} channels are no heads of {dim}");
    let end = start + tokens;
    assert!(end <= table.positions(), "rotary: {end} positions, a table of {}", table.positions());
    let _timer = time(Operator::Rotary, Pass::Forward);
    let state = State { table, tokens, start };
    (state.turn(x, Turn::Forward), state)
}

pub(crate) fn recorded<C: CheckpointStrategy>(
    x: TrackedTensor,
    table: Arc<RotaryTable>,
    tokens: usize,
    start: usize,
) -> TrackedTensor {
    let (x, node) = x.into_parts();
    let (out, state) = forward(x, table, tokens, start);
    record::<C, _, 1>(Rotary, [node], state, out)
}

#[derive(Debug)]
struct Rotary;

impl Backward<Flex, 1> for Rotary {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let g = grads.consume::<Flex>(&ops.node);
        let timer = time(Operator::Rotary, Pass::Backward);
        let dx = ops.state.turn(g, Turn::Back);
        drop(timer);
        register(grads, ops, [Some(dx)]);
    }
}
