//! The parameters of a stage: one ordered, named list that everything else walks.

use burn::tensor::{Device, Gradients, Tensor, TensorData};
use thinwire_ops::GradientSum;

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
    /// The values, flat, without autodiff.
    pub value: Tensor<1>,
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
}

impl ParamSet {
    /// An empty set; `device` is without autodiff, `seed` starts every parameter; without one they are zero, for values
    /// that are loaded.
    pub fn new(device: Device, seed: Option<u64>) -> Self {
        Self { device, seed, params: Vec::new() }
    }

    /// Appends a matrix.
    pub fn matrix(&mut self, name: String, shape: [usize; 2], init: Init) -> Matrix {
        let twin = name.clone();
        self.matrix_like(name, shape, init, &twin)
    }

    /// Appends a matrix that starts as the one named `twin` does.
    pub fn matrix_like(&mut self, name: String, shape: [usize; 2], init: Init, twin: &str) -> Matrix {
        let values = self.start(init, twin, shape.iter().product());
        Matrix(self.push(name, shape.to_vec(), values))
    }

    /// Appends a vector.
    pub fn vector(&mut self, name: String, len: usize, init: Init) -> Vector {
        let values = self.start(init, &name, len);
        Vector(self.push(name, vec![len], values))
    }

    fn start(&self, init: Init, name: &str, len: usize) -> Vec<f32> {
        self.seed.map_or_else(|| vec![0.0; len], |seed| init.values(seed, name, len))
    }

    fn push(&mut self, name: String, shape: Vec<usize>, values: Vec<f32>) -> usize {
        self.params.push(Parameter { value: self.upload(values), name, shape });
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
        GradientSums(self.params.iter().map(|_| GradientSum::default()).collect())
    }

    /// Fresh autodiff leaves over the same storage: the graph of one micro-batch. Its backward pass adds to `sums`.
    pub fn leaves(&self, sums: &GradientSums) -> Leaves {
        self.collect_leaves(|value| Tensor::from_inner(value).require_grad(), Some(sums.clone()))
    }

    /// The same values without a graph, for evaluation.
    pub fn constants(&self) -> Leaves {
        self.collect_leaves(|value| value, None)
    }

    fn collect_leaves(&self, leaf: impl Fn(Tensor<1>) -> Tensor<1>, sums: Option<GradientSums>) -> Leaves {
        let tensors = self.params.iter().map(|p| leaf(p.value.clone())).collect();
        let shapes = self.params.iter().map(|p| p.shape.clone()).collect();
        Leaves { tensors, shapes, sums }
    }
}

/// The gradients of a set's parameters, in order, summed over micro-batches. Clones are the same sums.
#[derive(Clone, Debug)]
pub struct GradientSums(Vec<GradientSum>);

impl GradientSums {
    /// Takes each parameter's, flat; `None` where no path led to it. The sums start anew.
    pub fn take(&self) -> Vec<Option<Tensor<1>>> {
        self.0.iter().map(GradientSum::take).collect()
    }
}

/// The parameters as one forward pass sees them.
#[derive(Debug)]
pub struct Leaves {
    tensors: Vec<Tensor<1>>,
    shapes: Vec<Vec<usize>>,
    /// `None` without a graph.
    sums: Option<GradientSums>,
}

impl Leaves {
    /// A matrix in its own shape.
    pub fn matrix(&self, m: Matrix) -> Tensor<2> {
        self.tensors[m.0].clone().reshape([self.shapes[m.0][0], self.shapes[m.0][1]])
    }

    /// A matrix in its own shape for an operator that adds its gradient to a sum.
    pub fn summed(&self, m: Matrix) -> (Tensor<2>, Option<&GradientSum>) {
        let Some(GradientSums(sums)) = &self.sums else { return (self.matrix(m), None) };
        let value = self.tensors[m.0].clone().inner().reshape([self.shapes[m.0][0], self.shapes[m.0][1]]);
        // A leaf of its own: a path from the other one would have to have a gradient.
        (Tensor::from_inner(value).require_grad(), Some(&sums[m.0]))
    }

    /// A vector.
    pub fn vector(&self, v: Vector) -> Tensor<1> {
        self.tensors[v.0].clone()
    }

    /// Ends a backward pass: adds the gradients that operators did not add themselves.
    pub fn add_gradients(&self, tape: &mut Gradients) {
        for (leaf, sum) in self.tensors.iter().zip(self.sums.iter().flat_map(|sums| &sums.0)) {
            if let Some(gradient) = leaf.grad_remove(tape) {
                sum.add(gradient);
            }
        }
    }
}
