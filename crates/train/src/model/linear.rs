//! Linear layers over the last dimension.

use burn::tensor::Tensor;
use thinwire_ops::{WeightLayout, linear};

use super::{Init, Leaves, Matrix, ParamSet, Vector};

/// `y = x W (+ b)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: Matrix,
    bias: Option<Vector>,
    layout: WeightLayout,
}

impl Linear {
    /// A layer without bias, its weight stored `[out, in]`.
    pub(crate) fn plain(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let weight = params.weight(format!("{name}.weight"), [fan_out, fan_in], Init::Normal(std));
        Self { weight, bias: None, layout: WeightLayout::OutIn }
    }

    /// A layer with bias, its weight stored `[out, in]`.
    pub(crate) fn biased(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let plain = Self::plain(params, name, [fan_in, fan_out], std);
        let bias = Some(params.vector(format!("{name}.bias"), fan_out, Init::Zeros));
        Self { bias, ..plain }
    }

    /// A layer with bias, its weight stored `[in, out]`.
    pub(crate) fn conv1d(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let weight = params.weight(format!("{name}.weight"), [fan_in, fan_out], Init::Normal(std));
        let bias = Some(params.vector(format!("{name}.bias"), fan_out, Init::Zeros));
        Self { weight, bias, layout: WeightLayout::InOut }
    }

    /// `x: [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        let bias = self.bias.map(|bias| leaves.vector(bias));
        let (weight, sum) = leaves.summed(self.weight);
        linear(x, weight, bias, self.layout, sum)
    }
}
