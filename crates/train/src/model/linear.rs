//! Linear layers over the last dimension.

use std::ops::Range;

use burn::tensor::Tensor;
use thinwire_ops::{WeightLayout, linear};

use super::lora::Adapter;
use super::{Architecture, Init, Leaves, Matrix, ParamSet, Slice, Vector};
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

/// A rank's share of a layer's weight, seen as `[in, out]`.
#[derive(Clone, Debug)]
pub(crate) enum Share {
    /// Some of the results, from all inputs.
    Columns(Vec<Range<usize>>),
    /// A summand of all results, from some of the inputs.
    Rows(Range<usize>),
}

impl Share {
    /// That of the weight `shape: [in, out]`, as it is stored.
    fn of_weight(&self, [fan_in, fan_out]: [usize; 2], layout: WeightLayout) -> Slice {
        let (of_in, of_out) = if layout == WeightLayout::InOut { (0, 1) } else { (1, 0) };
        let shape = if layout == WeightLayout::InOut { [fan_in, fan_out] } else { [fan_out, fan_in] };
        match self {
            Self::Columns(ranges) => Slice::along(shape, of_out, ranges),
            Self::Rows(range) => Slice::along(shape, of_in, std::slice::from_ref(range)),
        }
    }
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
        let slice = match share {
            Share::Columns(ranges) => Slice::along([fan_out], 0, ranges),
            Share::Rows(_) => Slice::from([fan_out]),
        };
        let bias = (bias == Bias::With).then(|| params.vector(format!("{name}.bias"), slice, Init::Zeros));
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
