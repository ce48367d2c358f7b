//! The parameters of a stage: one ordered, named list that everything else walks.

use std::ops::Range;

use burn::tensor::{Device, Gradients, Tensor, TensorData};

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
    /// Row-major shape, of one or two dimensions, as the file has it.
    pub shape: Vec<usize>,
    /// The values, flat, without autodiff.
    pub value: Tensor<1>,
    /// Whether training changes it: all but the weights that adapters adapt. A frozen one has no gradient and no state,
    /// and is in no checkpoint.
    pub trainable: bool,
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
    /// The same for adapters.
    adapter_seed: Option<u64>,
    /// Whether parameters that are no adapters are.
    frozen: bool,
    params: Vec<Parameter>,
}

impl ParamSet {
    /// An empty set; `device` is without autodiff, `seed` starts every parameter; without one they are zero, for values
    /// that are loaded.
    pub fn new(device: Device, seed: Option<u64>) -> Self {
        Self { device, seed, adapter_seed: seed, frozen: false, params: Vec::new() }
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

    /// Appends a matrix.
    pub fn matrix(&mut self, name: String, shape: [usize; 2], init: Init) -> Matrix {
        let twin = name.clone();
        self.matrix_like(name, shape, init, &twin)
    }

    /// Appends a matrix that starts as the one named `twin` does.
    pub fn matrix_like(&mut self, name: String, shape: [usize; 2], init: Init, twin: &str) -> Matrix {
        let values = start(self.seed, init, twin, shape.iter().product());
        Matrix(self.push(name, shape.to_vec(), values, !self.frozen))
    }

    /// Appends a matrix of an adapter.
    pub fn adapter(&mut self, name: String, shape: [usize; 2], init: Init) -> Matrix {
        let values = start(self.adapter_seed, init, &name, shape.iter().product());
        Matrix(self.push(name, shape.to_vec(), values, true))
    }

    /// Appends a vector.
    pub fn vector(&mut self, name: String, len: usize, init: Init) -> Vector {
        let values = start(self.seed, init, &name, len);
        Vector(self.push(name, vec![len], values, !self.frozen))
    }

    fn push(&mut self, name: String, shape: Vec<usize>, values: Vec<f32>, trainable: bool) -> usize {
        self.params.push(Parameter { value: self.upload(values), name, shape, trainable });
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
        self.params.iter_mut()
    }

    /// The positions in `range` of the parameters that training changes, with these.
    pub fn trainable(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, &Parameter)> {
        let in_range = self.params.iter().enumerate().skip(range.start).take(range.len());
        in_range.filter(|(_, parameter)| parameter.trainable)
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

    /// Fresh autodiff leaves over the same storage: the graph of one micro-batch. Frozen parameters are constants in it,
    /// so nothing is computed for their gradients.
    pub fn leaves(&self) -> Leaves {
        self.collect_leaves(|parameter| {
            let value = Tensor::from_inner(parameter.value.clone());
            if parameter.trainable { value.require_grad() } else { value }
        })
    }

    /// The same values without a graph, for evaluation.
    pub fn constants(&self) -> Leaves {
        self.collect_leaves(|parameter| parameter.value.clone())
    }

    fn collect_leaves(&self, leaf: impl Fn(&Parameter) -> Tensor<1>) -> Leaves {
        let tensors = self.params.iter().map(leaf).collect();
        let shapes = self.params.iter().map(|p| p.shape.clone()).collect();
        Leaves { tensors, shapes }
    }
}

fn start(seed: Option<u64>, init: Init, name: &str, len: usize) -> Vec<f32> {
    seed.map_or_else(|| vec![0.0; len], |seed| init.values(seed, name, len))
}

/// The parameters as one forward pass sees them.
#[derive(Debug)]
pub struct Leaves {
    tensors: Vec<Tensor<1>>,
    shapes: Vec<Vec<usize>>,
}

impl Leaves {
    /// A matrix in its own shape.
    pub fn matrix(&self, m: Matrix) -> Tensor<2> {
        self.tensors[m.0].clone().reshape([self.shapes[m.0][0], self.shapes[m.0][1]])
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
