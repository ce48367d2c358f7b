//! RMSNorm and LayerNorm over the channels of each row.

use burn::tensor::Tensor;
use thinwire_ops::{layer_norm, rms_norm};

use super::{Init, Leaves, ParamSet, Vector};
use crate::config::Family;

/// A norm with its learned weight (and bias, for LayerNorm).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    weight: Vector,
    bias: Option<Vector>,
    eps: f64,
}

impl Norm {
    /// LayerNorm for GPT-2, RMSNorm for the others.
    pub(crate) fn new(params: &mut ParamSet, name: &str, family: Family, width: usize, eps: f64) -> Self {
        let weight = params.vector(format!("{name}.weight"), [width], Init::Ones);
        let bias =
            (family == Family::Gpt2).then(|| params.vector(format!("{name}.bias"), [width], Init::Zeros));
        Self { weight, bias, eps }
    }

    /// The same norm of what a rank alone has, so that its gradient is a summand.
    pub(crate) fn of_share(self, params: &mut ParamSet) -> Self {
        [Some(self.weight), self.bias]
            .into_iter()
            .flatten()
            .for_each(|vector| params.see_part_of_vector(vector));
        self
    }

    /// `x: [rows, width]` to the same shape.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        let (weight, eps) = (leaves.vector(self.weight), self.eps as f32);
        match self.bias {
            Some(bias) => layer_norm(x, weight, leaves.vector(bias), eps),
            None => rms_norm(x, weight, eps),
        }
    }
}
