use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::extension::FusedOps;
use crate::kernel::attention::{self as kernel, Inputs, Rows, Saved};
use crate::profile::{Operator, Pass, time};
use crate::tensor::{FlexTensor, TrackedTensor, contiguous, matrix_shape, record, register, rounded, wide};

/// The sizes of one causal attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Sequences.
    pub samples: usize,
    /// Queries of each sequence: its last tokens.
    pub queries: usize,
    /// Keys of each sequence: all its tokens, at least as many as queries.
    pub keys: usize,
    /// Query heads.
    pub query_heads: usize,
    /// Key and value heads; divides `query_heads`.
    pub kv_heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
}

/// Causal attention, `softmax(Q K^T / sqrt(head_dim) + causal) V` for each head, with grouped key and value heads.
///
/// `q: [samples * queries, query_heads * head_dim]`, `k`, `v: [samples * keys, kv_heads * head_dim]`, as projections leave
/// them (rows may be parts of wider ones); the result is like `q`. With fewer queries than keys the queries are the last
/// tokens, those before them a cache. Memory grows with the tokens, not with their square.
///
/// # Panics
/// When the shapes do not fit.
pub fn attention([q, k, v]: [Tensor<2>; 3], shape: AttentionShape) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::attention(q.into_dispatch(), k.into_dispatch(), v.into_dispatch(), shape))
}

impl AttentionShape {
    /// The shapes of queries, keys and values.
    fn matrices(&self) -> [[usize; 2]; 3] {
        let kv = [self.samples * self.keys, self.kv_heads * self.head_dim];
        [[self.samples * self.queries, self.query_heads * self.head_dim], kv, kv]
    }

    fn check(&self, inputs: &[FlexTensor; 3]) {
        let found = inputs.each_ref().map(matrix_shape);
        assert_eq!(found, self.matrices(), "attention: the shapes of q, k and v, {self:?}");
        assert!(found.as_flattened().iter().all(|&n| n > 0), "attention: nothing to attend to, {self:?}");
        assert!(self.queries <= self.keys, "attention: queries are the last of the keys, {self:?}");
        assert!(self.query_heads.is_multiple_of(self.kv_heads), "attention: heads share evenly, {self:?}");
    }
}

/// The inputs with rows of side-by-side channels, the result, and the logarithms of its sums.
#[derive(Clone, Debug)]
pub(crate) struct State {
    inputs: [FlexTensor; 3],
    out: FlexTensor,
    log_sums: Arc<Vec<f32>>,
    shape: AttentionShape,
}

/// The same values in rows whose channels lie side by side.
fn in_rows(tensor: FlexTensor) -> FlexTensor {
    match tensor.layout().strides() {
        [row, 1] if *row > 0 => tensor,
        _ => tensor.to_contiguous(),
    }
}

fn rows(tensor: &FlexTensor) -> Rows<'_> {
    let layout = tensor.layout();
    Rows { values: &tensor.storage()[layout.start_offset()..], stride: layout.strides()[0].cast_unsigned() }
}

fn inputs([q, k, v]: &[FlexTensor; 3], shape: AttentionShape) -> Inputs<'_> {
    Inputs { shape, q: rows(q), k: rows(k), v: rows(v) }
}

pub(crate) fn forward(tensors: [FlexTensor; 3], shape: AttentionShape) -> (FlexTensor, State) {
    shape.check(&tensors);
    let _timer = time(Operator::Attention, Pass::Forward);
    let tensors = tensors.map(in_rows);
    let [out_shape, ..] = shape.matrices();
    let mut out = vec![0.0; out_shape[0] * out_shape[1]];
    let log_sums = kernel::forward(inputs(&tensors.each_ref().map(wide), shape), &mut out);
    let out = rounded(out, out_shape, tensors[0].dtype());
    (out.clone(), State { inputs: tensors, out, log_sums: Arc::new(log_sums), shape })
}

pub(crate) fn recorded<C: CheckpointStrategy>(
    tensors: [TrackedTensor; 3],
    shape: AttentionShape,
) -> TrackedTensor {
    let [(q, q_node), (k, k_node), (v, v_node)] = tensors.map(TrackedTensor::into_parts);
    let (out, state) = forward([q, k, v], shape);
    record::<C, _, 3>(Attention, [q_node, k_node, v_node], state, out)
}

#[derive(Debug)]
struct Attention;

impl Backward<Flex, 3> for Attention {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let timer = time(Operator::Attention, Pass::Backward);
        let g = wide(&contiguous(grads.consume::<Flex>(&ops.node)));
        let State { inputs: tensors, out, log_sums, shape } = &ops.state;
        let (dtype, out) = (out.dtype(), wide(out));
        let saved = Saved { out: rows(&out), log_sums, g: rows(&g) };
        let [dq, dk, dv] = kernel::backward(inputs(&tensors.each_ref().map(wide), *shape), saved);
        let [q_shape, k_shape, v_shape] = shape.matrices();
        let gradients = [(dq, q_shape), (dk, k_shape), (dv, v_shape)]
            .map(|(gradient, shape)| Some(rounded(gradient, shape, dtype)));
        drop(timer);
        register(grads, ops, gradients);
    }
}
