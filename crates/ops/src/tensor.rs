//! Between Burn's tensors and slices, and the recording of an operator in the graph.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use half::bf16;
use rayon::prelude::*;

/// A tensor of the CPU backend.
pub(crate) type FlexTensor = FloatTensor<Flex>;

/// A node of its graph.
pub(crate) type TrackedTensor = FloatTensor<Autodiff<Flex>>;

/// The CPU's tensor.
///
/// # Panics
/// If it is another device's.
pub(crate) fn primitive(tensor: Tensor<1>) -> FlexTensor {
    tensor.try_into_primitive::<Flex>().unwrap_or_else(|error| panic!("not a tensor of the CPU: {error:?}"))
}

/// Numbers below `count`, for `operator`.
///
/// # Panics
/// If one is not.
pub(crate) fn indices(operator: &str, tensor: Tensor<1, Int>, count: usize) -> Vec<u32> {
    let index = |id: i64| match u32::try_from(id) {
        Ok(id) if (id as usize) < count => id,
        _ => panic!("{operator}: index {id} of {count}"),
    };
    tensor.into_data().iter::<i64>().map(index).collect()
}

/// The same values with row-major storage.
pub(crate) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// Values that one thread converts.
const PIECE: usize = 1 << 15;

/// The same values in `f32`: the tensor itself, or a converted copy of one in `bf16`.
pub(crate) fn wide(tensor: &FlexTensor) -> FlexTensor {
    match tensor.dtype() {
        DType::F32 => tensor.clone(),
        _ => FlexTensor::from_data(TensorData::new(into_values(tensor.clone()), tensor.shape())),
    }
}

/// The values of a contiguous tensor.
///
/// # Panics
/// If it is not contiguous or not `f32`.
pub(crate) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("the tensor is contiguous and f32")
}

/// The values: the tensor's own storage where nobody shares it and nothing is to be converted.
///
/// # Panics
/// If they are neither `f32` nor `bf16`.
pub(crate) fn into_values(tensor: FlexTensor) -> Vec<f32> {
    if tensor.dtype() == DType::F32 {
        return tensor.into_data().try_into_vec::<f32>().expect("the tensor is f32");
    }
    let tensor = contiguous(tensor);
    let narrow: &[bf16] = tensor.as_slice().expect("the tensor is contiguous, and f32 or bf16");
    let mut values = vec![0.0; narrow.len()];
    values.par_chunks_mut(PIECE).zip(narrow.par_chunks(PIECE)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f32());
    });
    values
}

/// An `f32` tensor that owns `values`.
pub(crate) fn from_values<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// A tensor of `dtype` with `values`, rounded to nearest, half to even.
pub(crate) fn rounded<const D: usize>(values: Vec<f32>, shape: [usize; D], dtype: DType) -> FlexTensor {
    if dtype == DType::F32 {
        return from_values(values, shape);
    }
    let mut narrow = vec![bf16::ZERO; values.len()];
    narrow.par_chunks_mut(PIECE).zip(values.par_chunks(PIECE)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = bf16::from_f32(*from));
    });
    FlexTensor::from_data(TensorData::new(narrow, shape))
}

/// Rows and columns of a matrix.
pub(crate) fn matrix_shape(tensor: &FlexTensor) -> [usize; 2] {
    tensor.shape().dims()
}

/// Records an operator with what its backward pass needs.
pub(crate) fn record<C: CheckpointStrategy, O: Backward<Flex, N>, const N: usize>(
    operator: O,
    inputs: [NodeGuard; N],
    state: O::State,
    out: FlexTensor,
) -> TrackedTensor {
    match operator.prepare::<C>(inputs).compute_bound().stateful() {
        OpsKind::Tracked(node) => node.finish(state, out),
        OpsKind::UnTracked(node) => node.finish(out),
    }
}

/// Adds a gradient to each input's that is tracked.
pub(crate) fn register<S, const N: usize>(
    grads: &mut Gradients,
    ops: Ops<S, N>,
    gradients: [Option<FlexTensor>; N],
) {
    for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
        if let (Some(parent), Some(gradient)) = (parent, gradient) {
            grads.register::<Flex>(parent.id, gradient);
        }
    }
}
