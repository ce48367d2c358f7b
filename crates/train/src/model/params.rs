//! The parameters of a stage: one ordered, named list that everything else walks.

use std::ops::Range;
use std::sync::OnceLock;

use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::config::Dtype;

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zero (biases).
    Zeros,
    /// All one (norm weights).
    Ones,
    /// Gaussian of this standard deviation.
    Normal(f32),
}

/// One named tensor.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Hugging Face name, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Row-major shape, of one or two dimensions, as the file has it.
    pub shape: Vec<usize>,
    /// The values, flat, `f32`, without autodiff.
    pub value: Tensor<1>,
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

/// Names a matrix of a [`ParamSet`].
#[derive(Clone, Copy, Debug)]
pub struct Matrix(usize);

/// Names a vector of a [`ParamSet`].
#[derive(Clone, Copy, Debug)]
pub struct Vector(usize);

/// The parameters of the units a stage owns, in unit order.
///
/// The order is the order of every sum over parameters, so it decides the bits of the clipping norm: appending the
/// sets of all stages gives the set of the whole model.
#[derive(Clone, Debug)]
pub struct ParamSet {
    device: Device,
    /// `None` for parameters that are zero until their values are loaded.
    seed: Option<u64>,
    params: Vec<Parameter>,
    dtype: Dtype,
    /// The weights of linear layers in `bf16`, from their `f32` values; made when first asked for.
    rounded: OnceLock<Vec<Option<Tensor<1>>>>,
}

impl ParamSet {
    /// An empty set; `device` is without autodiff, `seed` starts every parameter; without one they are zero, for values
    /// that are loaded.
    pub fn new(device: Device, seed: Option<u64>) -> Self {
        Self { device, seed, params: Vec::new(), dtype: Dtype::F32, rounded: OnceLock::new() }
    }

    /// Appends a matrix of which rows are looked up.
    pub fn table(&mut self, name: String, shape: [usize; 2], init: Init) -> Matrix {
        let values = self.start(init, &name, shape.iter().product());
        Matrix(self.push(name, shape.to_vec(), values, false))
    }

    /// Appends the weight of a linear layer.
    pub fn weight(&mut self, name: String, shape: [usize; 2], init: Init) -> Matrix {
        let twin = name.clone();
        self.weight_like(name, shape, init, &twin)
    }

    /// Appends the weight of a linear layer that starts as the matrix named `twin` does.
    pub fn weight_like(&mut self, name: String, shape: [usize; 2], init: Init, twin: &str) -> Matrix {
        let values = self.start(init, twin, shape.iter().product());
        Matrix(self.push(name, shape.to_vec(), values, true))
    }

    /// Appends a vector.
    pub fn vector(&mut self, name: String, len: usize, init: Init) -> Vector {
        let values = self.start(init, &name, len);
        Vector(self.push(name, vec![len], values, false))
    }

    fn start(&self, init: Init, name: &str, len: usize) -> Vec<f32> {
        self.seed.map_or_else(|| vec![0.0; len], |seed| init.values(seed, name, len))
    }

    fn push(&mut self, name: String, shape: Vec<usize>, values: Vec<f32>, is_weight: bool) -> usize {
        self.params.push(Parameter { value: self.upload(values), name, shape, is_weight });
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

    /// The number format of activations, and of weights where they enter products.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Sets [`ParamSet::dtype`]; the parameters themselves stay `f32`.
    pub fn set_dtype(&mut self, dtype: Dtype) {
        self.rounded.take();
        self.dtype = dtype;
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

    /// Fresh autodiff leaves over the same storage: the graph of one micro-batch.
    pub fn leaves(&self) -> Leaves {
        self.leaves_of(0..self.len())
    }

    /// The same for the parameters at `positions`, and constants for all others.
    pub fn leaves_of(&self, positions: Range<usize>) -> Leaves {
        self.collect_leaves(|at, value| {
            let constant = Tensor::from_inner(value);
            if positions.contains(&at) { constant.require_grad() } else { constant }
        })
    }

    /// The same values without a graph, for evaluation.
    pub fn constants(&self) -> Leaves {
        self.collect_leaves(|_, value| value)
    }

    fn collect_leaves(&self, leaf: impl Fn(usize, Tensor<1>) -> Tensor<1>) -> Leaves {
        let rounded = self.rounded.get_or_init(|| {
            let rounds = |p: &Parameter| p.is_weight && self.dtype != Dtype::F32;
            self.params.iter().map(|p| rounds(p).then(|| self.dtype.cast(p.value.clone()))).collect()
        });
        let values = self.params.iter().zip(rounded).map(|(p, rounded)| rounded.as_ref().unwrap_or(&p.value));
        let tensors = values.enumerate().map(|(at, value)| leaf(at, value.clone())).collect();
        let shapes = self.params.iter().map(|p| p.shape.clone()).collect();
        Leaves { tensors, shapes, dtype: self.dtype }
    }
}

/// The parameters as one forward pass sees them.
#[derive(Debug)]
pub struct Leaves {
    tensors: Vec<Tensor<1>>,
    shapes: Vec<Vec<usize>>,
    dtype: Dtype,
}

impl Leaves {
    /// A matrix in its own shape.
    pub fn matrix(&self, m: Matrix) -> Tensor<2> {
        self.tensors[m.0].clone().reshape([self.shapes[m.0][0], self.shapes[m.0][1]])
    }

    /// The number format of activations.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// A vector.
    pub fn vector(&self, v: Vector) -> Tensor<1> {
        self.tensors[v.0].clone()
    }

    /// Takes each parameter's gradient, flat and in order; `None` where no path led to it.
    pub fn gradients(&self, gradients: &mut Gradients) -> Vec<Option<Tensor<1>>> {
        self.tensors.iter().map(|leaf| leaf.grad_remove(gradients)).collect()
    }
}
