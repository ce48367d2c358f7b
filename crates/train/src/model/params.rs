//! The parameters of a stage: one ordered, named list that everything else walks.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use burn::tensor::{Device, Tensor, TensorData};

use super::leaves::{GradientSums, Leaf, Leaves};
use super::{Shard, Slice};
use crate::config::Dtype;
use crate::tensor_parallel::TensorGroup;

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zero (biases).
    Zeros,
    /// All one (norm weights).
    Ones,
    /// Gaussian of this standard deviation.
    Normal(f32),
    /// Uniform from minus this bound to the bound (A of adapters).
    Uniform(f32),
}

/// One named tensor.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Hugging Face name, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Row-major shape, of one or two dimensions, as the file has it; that of the rank's share where ranks share a model.
    pub shape: Vec<usize>,
    /// What the values are of those in the file.
    pub slice: Slice,
    /// The values, flat, without autodiff; `f32`, but for frozen weights of a run in `bf16`.
    pub value: Tensor<1>,
    /// Whether training changes it: all but the weights that adapters adapt. A frozen one has no gradient and no state,
    /// and is in no checkpoint.
    pub trainable: bool,
    /// Whether the rank's gradient is a summand of the parameter's: every rank has all of its values, and sees some of what
    /// they do.
    pub partial: bool,
    /// Whether it is the weight of a linear layer: those enter products in the run's number format.
    is_weight: bool,
}

impl Parameter {
    /// Whether weight decay applies: matrices yes, norms and biases no.
    pub fn decays(&self) -> bool {
        self.shape.len() > 1
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the parameter has no values; it never does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a parameter is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The weight of a linear layer.
    Weight,
    /// A weight that is trained whatever is frozen.
    Adapter,
    Other,
}

/// Names a matrix of a [`ParamSet`].
#[derive(Clone, Copy, Debug)]
pub struct Matrix(pub(super) usize);

/// Names a vector of a [`ParamSet`].
#[derive(Clone, Copy, Debug)]
pub struct Vector(pub(super) usize);

/// The parameters of the units a stage owns, in unit order.
///
/// The order is the order of every sum over parameters, so it decides the bits of the clipping norm: appending the
/// sets of all stages gives the set of the whole model.
#[derive(Clone, Debug)]
pub struct ParamSet {
    device: Device,
    /// `None` for parameters that are zero until their values are loaded.
    seed: Option<u64>,
    /// The same for adapters.
    adapter_seed: Option<u64>,
    /// Whether parameters that are no adapters are.
    frozen: bool,
    shard: Shard,
    /// The other ranks, where there are any.
    group: Option<Arc<TensorGroup>>,
    params: Vec<Parameter>,
    dtype: Dtype,
    /// The weights of linear layers in `bf16`, from their `f32` values; made when first asked for.
    rounded: OnceLock<Vec<Option<Tensor<1>>>>,
}

impl ParamSet {
    /// An empty set; `device` is without autodiff, `seed` starts every parameter; without one they are zero, for values
    /// that are loaded.
    pub fn new(device: Device, seed: Option<u64>) -> Self {
        Self {
            device,
            seed,
            adapter_seed: seed,
            frozen: false,
            shard: Shard::WHOLE,
            group: None,
            params: Vec::new(),
            dtype: Dtype::F32,
            rounded: OnceLock::new(),
        }
    }

    /// The same, but adapters start from `seed`.
    #[must_use]
    pub fn with_adapters_from(self, seed: u64) -> Self {
        Self { adapter_seed: Some(seed), ..self }
    }

    /// The same, but what is appended is frozen, except adapters.
    #[must_use]
    pub fn frozen(self) -> Self {
        Self { frozen: true, ..self }
    }

    /// The same, but of what is appended it has the share that modules cut for `shard`.
    #[must_use]
    pub fn of_shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// The share that the set has.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// The ranks that share the model, where forward passes are to find them.
    pub fn group(&self) -> Option<&Arc<TensorGroup>> {
        self.group.as_ref()
    }

    /// Sets the ranks that share the model.
    pub fn set_group(&mut self, group: Arc<TensorGroup>) {
        self.group = Some(group);
    }

    /// Appends a matrix of which rows are looked up.
    pub fn table(&mut self, name: String, slice: impl Into<Slice>, init: Init) -> Matrix {
        let slice = slice.into();
        let value = self.start(self.seed, init, &name, &slice);
        Matrix(self.push(name, slice, value, Kind::Other))
    }

    /// Appends the weight of a linear layer.
    pub fn weight(&mut self, name: String, slice: impl Into<Slice>, init: Init) -> Matrix {
        let twin = name.clone();
        self.weight_like(name, slice, init, &twin)
    }

    /// Appends the weight of a linear layer that starts as the matrix named `twin` does.
    pub fn weight_like(&mut self, name: String, slice: impl Into<Slice>, init: Init, twin: &str) -> Matrix {
        let slice = slice.into();
        let value = self.start(self.seed, init, twin, &slice);
        Matrix(self.push(name, slice, value, Kind::Weight))
    }

    /// Appends a matrix of an adapter.
    pub fn adapter(&mut self, name: String, slice: impl Into<Slice>, init: Init) -> Matrix {
        let slice = slice.into();
        let value = self.start(self.adapter_seed, init, &name, &slice);
        Matrix(self.push(name, slice, value, Kind::Adapter))
    }

    /// Appends a vector.
    pub fn vector(&mut self, name: String, slice: impl Into<Slice>, init: Init) -> Vector {
        let slice = slice.into();
        let value = self.start(self.seed, init, &name, &slice);
        Vector(self.push(name, slice, value, Kind::Other))
    }

    /// Says that a rank sees some of what the matrix does: [`Parameter::partial`].
    pub fn see_part_of_matrix(&mut self, matrix: Matrix) {
        self.params[matrix.0].partial = !self.shard.is_whole();
    }

    /// The same of a vector.
    pub fn see_part_of_vector(&mut self, vector: Vector) {
        self.params[vector.0].partial = !self.shard.is_whole();
    }

    /// The whole tensor's starting values decide those of its part.
    fn start(&self, seed: Option<u64>, init: Init, name: &str, slice: &Slice) -> Tensor<1> {
        self.upload(match seed {
            Some(seed) => slice.take(init.values(seed, name, slice.whole().iter().product())),
            None => vec![0.0; slice.shape().iter().product()],
        })
    }

    fn push(&mut self, name: String, slice: Slice, value: Tensor<1>, kind: Kind) -> usize {
        self.params.push(Parameter {
            name,
            shape: slice.shape(),
            slice,
            value,
            trainable: kind == Kind::Adapter || !self.frozen,
            partial: false,
            is_weight: kind != Kind::Other,
        });
        self.params.len() - 1
    }

    /// A flat tensor on this set's device.
    pub fn upload(&self, values: Vec<f32>) -> Tensor<1> {
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [len]), &self.device)
    }

    /// The parameters in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Parameter> {
        self.params.iter()
    }

    /// The parameters in order, to be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Parameter> {
        self.rounded.take();
        self.params.iter_mut()
    }

    /// The positions in `range` of the parameters that training changes, with these.
    pub fn trainable<'a>(
        &'a self,
        range: &Range<usize>,
    ) -> impl Iterator<Item = (usize, &'a Parameter)> + use<'a> {
        let in_range = self.params.iter().enumerate().skip(range.start).take(range.len());
        in_range.filter(|(_, parameter)| parameter.trainable)
    }

    /// The number format of activations, and of weights where they enter products.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Sets [`ParamSet::dtype`]. Parameters stay `f32`, except frozen weights, which are rounded once and for all.
    pub fn set_dtype(&mut self, dtype: Dtype) {
        self.rounded.take();
        self.dtype = dtype;
        for frozen in self.params.iter_mut().filter(|p| p.is_weight && !p.trainable) {
            let value = frozen.value.extract();
            frozen.value = dtype.cast(value);
        }
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.params.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// The position of a parameter by name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Where the gradients of the set are summed.
    pub fn gradient_sums(&self) -> GradientSums {
        GradientSums::new(self.len())
    }

    /// Fresh autodiff leaves over the same storage: the graph of one micro-batch. Its backward pass adds to `sums`. Frozen
    /// parameters are constants in it, so nothing is computed for their gradients.
    pub fn leaves(&self, sums: &GradientSums) -> Leaves {
        self.leaves_of(0..self.len(), sums)
    }

    /// The same for the parameters at `positions`, and constants for all others.
    pub fn leaves_of(&self, positions: Range<usize>, sums: &GradientSums) -> Leaves {
        self.collect_leaves(|at, value| {
            let value = Tensor::from_inner(value);
            if self.params[at].trainable && positions.contains(&at) {
                Leaf { value: value.require_grad(), sum: Some(sums.of(at)) }
            } else {
                Leaf { value, sum: None }
            }
        })
    }

    /// The same values without a graph, for evaluation.
    pub fn constants(&self) -> Leaves {
        self.collect_leaves(|_, value| Leaf { value, sum: None })
    }

    fn collect_leaves(&self, leaf: impl Fn(usize, Tensor<1>) -> Leaf) -> Leaves {
        let rounded = self.rounded.get_or_init(|| {
            let rounds = |p: &Parameter| p.is_weight && p.trainable && self.dtype != Dtype::F32;
            self.params.iter().map(|p| rounds(p).then(|| self.dtype.cast(p.value.clone()))).collect()
        });
        let values = self.params.iter().zip(rounded).map(|(p, rounded)| rounded.as_ref().unwrap_or(&p.value));
        let leaves = values.enumerate().map(|(at, value)| leaf(at, value.clone())).collect();
        let shapes = self.params.iter().map(|p| p.shape.clone()).collect();
        Leaves::new(leaves, shapes, self.dtype, self.group.clone())
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::DType;

    use super::*;

    #[test]
    fn frozen_weights_alone_are_kept_in_bf16() {
        let stored = |frozen: bool| {
            let mut set = ParamSet::new(Device::flex(), Some(1));
            set.frozen = frozen;
            set.table("table".into(), [4, 2], Init::Normal(1.0));
            set.weight("weight".into(), [3, 2], Init::Normal(1.0));
            set.vector("bias".into(), [3], Init::Ones);
            set.adapter("adapter".into(), [1, 2], Init::Normal(1.0));
            set.set_dtype(Dtype::Bf16);
            let computed = |m| set.constants().matrix(m).dtype();
            assert_eq!([0, 1, 3].map(|at| computed(Matrix(at))), [DType::F32, DType::BF16, DType::BF16]);
            set.iter().map(|p| p.value.dtype()).collect::<Vec<_>>()
        };
        assert_eq!(stored(false), [DType::F32; 4]);
        assert_eq!(stored(true), [DType::F32, DType::BF16, DType::F32, DType::F32]);
    }
}
