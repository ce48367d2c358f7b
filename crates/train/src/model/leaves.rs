//! The parameters in the graph of one micro-batch, and the sums of their gradients.

use std::sync::Arc;

use burn::tensor::{Gradients, Tensor};
use thinwire_ops::GradientSum;

use super::params::{Matrix, Vector};
use crate::config::Dtype;
use crate::tensor_parallel::{Site, TensorGroup};

/// The gradients of a set's parameters, in order, summed over micro-batches. Clones are the same sums.
#[derive(Clone, Debug)]
pub struct GradientSums(Vec<GradientSum>);

impl GradientSums {
    /// Sums of nothing for `parameters` parameters.
    pub(super) fn new(parameters: usize) -> Self {
        Self((0..parameters).map(|_| GradientSum::default()).collect())
    }

    /// That of the parameter at `position`.
    pub(super) fn of(&self, position: usize) -> GradientSum {
        self.0[position].clone()
    }

    /// Takes each parameter's, flat; `None` where no path led to it. The sums start anew.
    pub fn take(&self) -> Vec<Option<Tensor<1>>> {
        self.0.iter().map(GradientSum::take).collect()
    }
}

/// The parameters as one forward pass sees them.
#[derive(Debug)]
pub struct Leaves {
    params: Vec<Leaf>,
    shapes: Vec<Vec<usize>>,
    dtype: Dtype,
    group: Option<Arc<TensorGroup>>,
}

/// One of them, flat.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) value: Tensor<1>,
    /// Where its gradient goes; `None` for a constant.
    pub(super) sum: Option<GradientSum>,
}

impl Leaves {
    pub(super) fn new(
        params: Vec<Leaf>,
        shapes: Vec<Vec<usize>>,
        dtype: Dtype,
        group: Option<Arc<TensorGroup>>,
    ) -> Self {
        Self { params, shapes, dtype, group }
    }

    /// The ranks that share the model, if there are others.
    pub fn group(&self) -> Option<&Arc<TensorGroup>> {
        self.group.as_ref()
    }

    /// `x`, from where on each rank computes something else of it: [`TensorGroup::enter`].
    pub fn enter(&self, x: Tensor<2>, site: Site) -> Tensor<2> {
        match &self.group {
            Some(group) => group.enter(x, site),
            None => x,
        }
    }

    /// A matrix in its own shape.
    pub fn matrix(&self, m: Matrix) -> Tensor<2> {
        self.params[m.0].value.clone().reshape([self.shapes[m.0][0], self.shapes[m.0][1]])
    }

    /// The number format of activations.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// A matrix in its own shape for an operator that adds its gradient to a sum.
    pub fn summed(&self, m: Matrix) -> (Tensor<2>, Option<&GradientSum>) {
        let Leaf { value, sum: Some(sum) } = &self.params[m.0] else { return (self.matrix(m), None) };
        let value = value.clone().inner().reshape([self.shapes[m.0][0], self.shapes[m.0][1]]);
        // A leaf of its own: a path from the other one would have to have a gradient.
        (Tensor::from_inner(value).require_grad(), Some(sum))
    }

    /// A vector.
    pub fn vector(&self, v: Vector) -> Tensor<1> {
        self.params[v.0].value.clone()
    }

    /// Whether a backward pass has anything to do for the parameters.
    pub fn trains(&self) -> bool {
        self.params.iter().any(|leaf| leaf.sum.is_some())
    }

    /// Ends a backward pass: adds the gradients that operators did not add themselves.
    pub fn add_gradients(&self, tape: &mut Gradients) {
        for Leaf { value, sum } in &self.params {
            if let Some(sum) = sum
                && let Some(gradient) = value.grad_remove(tape)
            {
                sum.add(gradient);
            }
        }
    }
}
