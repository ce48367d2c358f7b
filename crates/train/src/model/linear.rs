//! Linear layers over the last dimension.

use burn::tensor::Tensor;
use thinwire_ops::{WeightLayout, linear};

use super::lora::Adapter;
use super::share::Share;
use super::{Architecture, Init, Leaves, Matrix, ParamSet, Vector};
use crate::tensor_parallel::Site;

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
    /// The rank's `share` of the layer of module `name`, its weight stored as the family does. It has an adapter if `arch` says
    /// so.
    pub(crate) fn new(
        params: &mut ParamSet,
        arch: &Architecture,
        name: &str,
        [fan_in, fan_out]: [usize; 2],
        std: f32,
        bias: Bias,
        share: &Share,
    ) -> Self {
        let layout = arch.weight_layout();
        let slice = share.of_weight([fan_in, fan_out], layout);
        let weight = params.weight(format!("{name}.weight"), slice, Init::Normal(std));
        let mut vector = || params.vector(format!("{name}.bias"), share.of_bias(fan_out), Init::Zeros);
        let bias = (bias == Bias::With).then(&mut vector);
        let lora = arch.lora.as_ref().filter(|lora| lora.adapts(name));
        let adapter = lora.map(|lora| Adapter::new(params, name, [fan_in, fan_out], lora, share));
        Self { weight, bias, layout, adapter }
    }

    /// `x: [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        self.product(leaves, x, self.bias)
    }

    /// As [`Linear::forward`]; of a layer shared by rows what the ranks have is added up at `site`, and the bias to the sum.
    pub(crate) fn forward_summed(&self, leaves: &Leaves, x: Tensor<2>, site: Site) -> Tensor<2> {
        let Some(group) = leaves.group() else { return self.forward(leaves, x) };
        let y = group.reduce(self.product(leaves, x, None), site);
        match self.bias {
            Some(bias) => y + leaves.dtype().cast(leaves.vector(bias)).unsqueeze(),
            None => y,
        }
    }

    fn product(&self, leaves: &Leaves, x: Tensor<2>, bias: Option<Vector>) -> Tensor<2> {
        let bias = bias.map(|bias| leaves.vector(bias));
        let (weight, sum) = leaves.summed(self.weight);
        let Some(adapter) = &self.adapter else { return linear(x, weight, bias, self.layout, sum) };
        linear(x.clone(), weight, bias, self.layout, sum) + adapter.forward(leaves, x)
    }
}
