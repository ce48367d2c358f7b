use std::fmt;
use std::sync::Arc;

use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};

use crate::extension::FusedOps;
use crate::tensor::{
    FlexTensor, TrackedTensor, contiguous, into_values, matrix_shape, record, register, rounded,
};

/// Makes other values of a tensor's, row-major.
#[derive(Clone)]
pub struct HostFn(Arc<dyn Fn(Vec<f32>) -> Vec<f32> + Send + Sync>);

impl HostFn {
    /// `function`, which runs in the thread of the pass and may take its time: no lock of another graph is held.
    pub fn new(function: impl Fn(Vec<f32>) -> Vec<f32> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(crate) fn call(&self, values: Vec<f32>) -> Vec<f32> {
        (self.0)(values)
    }
}

impl fmt::Debug for HostFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFn")
    }
}

/// `x: [rows, columns]` with the values that `forward` makes of its values; its gradient gets those that `backward` makes of
/// the result's. `None` is the identity and costs nothing.
///
/// This is how something that no graph knows, such as a sum over processes, becomes a step of a model: the operators `f` and
/// `g` of tensor parallelism (Shoeybi et al., 2019, section 3) are one direction each.
///
/// # Panics
/// When there are not as many new values as old ones.
pub fn on_host(x: Tensor<2>, forward: Option<HostFn>, backward: Option<HostFn>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::on_host(x.into_dispatch(), forward, backward))
}

pub(crate) fn apply(x: FlexTensor, function: Option<&HostFn>) -> FlexTensor {
    let Some(function) = function else { return x };
    let (shape, dtype) = (matrix_shape(&x), x.dtype());
    let values = function.call(into_values(contiguous(x)));
    assert_eq!(values.len(), shape[0] * shape[1], "on_host: values for [{}, {}]", shape[0], shape[1]);
    rounded(values, shape, dtype)
}

pub(crate) fn recorded<C: CheckpointStrategy>(
    x: TrackedTensor,
    forward: Option<&HostFn>,
    backward: Option<HostFn>,
) -> TrackedTensor {
    let (x, node) = x.into_parts();
    let out = apply(x, forward);
    record::<C, _, 1>(OnHost, [node], backward, out)
}

#[derive(Debug)]
struct OnHost;

impl Backward<Flex, 1> for OnHost {
    type State = Option<HostFn>;

    fn backward(self, ops: Ops<Option<HostFn>, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let gradient = apply(gradient, ops.state.as_ref());
        register(grads, ops, [Some(gradient)]);
    }
}
