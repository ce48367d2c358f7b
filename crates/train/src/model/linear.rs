//! Linear layers over the last dimension.

use burn::tensor::Tensor;
use thinwire_ops::{WeightLayout, linear};

use super::lora::Adapter;
use super::{Architecture, Init, Leaves, Matrix, ParamSet, Vector};

/// `y = x W (+ b)`, and what an adapter adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: Matrix,
    bias: Option<Vector>,
    layout: WeightLayout,
    adapter: Option<Adapter>,
}

/// Whether a layer has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bias {
    With,
    Without,
}

impl Linear {
    /// The layer of module `name`, its weight stored as the family does. It has an adapter if `arch` says so.
    pub(crate) fn new(
        params: &mut ParamSet,
        arch: &Architecture,
        name: &str,
        [fan_in, fan_out]: [usize; 2],
        std: f32,
        bias: Bias,
    ) -> Self {
        let layout = arch.weight_layout();
        let shape = if layout == WeightLayout::InOut { [fan_in, fan_out] } else { [fan_out, fan_in] };
        let weight = params.weight(format!("{name}.weight"), shape, Init::Normal(std));
        let bias = (bias == Bias::With).then(|| params.vector(format!("{name}.bias"), fan_out, Init::Zeros));
        let lora = arch.lora.as_ref().filter(|lora| lora.adapts(name));
        let adapter = lora.map(|lora| Adapter::new(params, name, [fan_in, fan_out], lora));
        Self { weight, bias, layout, adapter }
    }

    /// `x: [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        let bias = self.bias.map(|bias| leaves.vector(bias));
        let (weight, sum) = leaves.summed(self.weight);
        let Some(adapter) = &self.adapter else { return linear(x, weight, bias, self.layout, sum) };
        linear(x.clone(), weight, bias, self.layout, sum) + adapter.forward(leaves, x)
    }
}
