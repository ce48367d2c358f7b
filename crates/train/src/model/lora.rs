//! Low-rank adapters beside frozen linear layers (Hu et al., 2021, section 4.1).

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use thinwire_ops::{WeightLayout, linear};

use super::linear::Share;
use super::{Init, Leaves, Matrix, ParamSet, Slice};
use crate::config::{LinearLayer, LoraConfig, ModelConfig, is_target};

/// Which linear layers have adapters. In a model with adapters they alone are trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lora {
    /// Rows of A and columns of B.
    pub rank: usize,
    /// What an adapter adds is multiplied by `alpha / rank`.
    pub alpha: f64,
    /// The layers: names of modules, or ends of their paths.
    pub targets: Vec<String>,
}

impl Lora {
    /// What a checked configuration comes to for `model`.
    pub fn new(config: &LoraConfig, model: &ModelConfig) -> Self {
        let all = || LinearLayer::all(model).iter().map(|layer| layer.name().to_owned()).collect();
        let mut targets: Vec<String> = config.targets.clone().unwrap_or_else(all);
        // GPT-2 has two of one name, and stages compare the list.
        targets.sort_unstable();
        targets.dedup();
        Self { rank: config.rank, alpha: config.alpha(), targets }
    }

    /// `alpha / rank`.
    pub fn scale(&self) -> f64 {
        self.alpha / self.rank as f64
    }

    /// Whether the linear layer `module` has an adapter.
    pub fn adapts(&self, module: &str) -> bool {
        self.targets.iter().any(|target| is_target(target, module))
    }

    /// The weight that computes what `weight` and its adapter do, `W + alpha / rank B A`.
    ///
    /// `weight` is row-major, `shape` by its `layout`; `a: [rank, in]`, `b: [out, rank]`.
    ///
    /// # Panics
    /// When the lengths do not fit each other.
    pub(crate) fn merge(
        &self,
        weight: Vec<f32>,
        shape: [usize; 2],
        layout: WeightLayout,
        [a, b]: [Vec<f32>; 2],
    ) -> Vec<f32> {
        let [fan_in, fan_out] = if layout == WeightLayout::InOut { shape } else { [shape[1], shape[0]] };
        let matrix = |values, shape: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new(values, shape), &Device::flex())
        };
        let product = matrix(b, [fan_out, self.rank]).matmul(matrix(a, [self.rank, fan_in]));
        let product = if layout == WeightLayout::InOut { product.transpose() } else { product };
        let merged = matrix(weight, shape) + product.mul_scalar(self.scale() as f32);
        merged.into_data().try_into_vec::<f32>().expect("weights are f32")
    }
}

/// The names of a module's A and B in files.
pub(crate) fn names(module: &str) -> [String; 2] {
    ["A", "B"].map(|matrix| format!("{module}.lora_{matrix}.weight"))
}

/// What is added to a linear layer's output: `alpha / rank x Aᵀ Bᵀ`, with `A: [rank, in]` and `B: [out, rank]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adapter {
    a: Matrix,
    b: Matrix,
    scale: f32,
}

impl Adapter {
    /// That of `module`, its parameters appended to `params`. A starts as PEFT's does (`kaiming_uniform_` with
    /// `a = sqrt(5)`), B at zero, so that training starts from the model itself.
    ///
    /// B is cut as the columns of the layer, A as its rows; the other one every rank has, and sees a part of.
    pub(crate) fn new(
        params: &mut ParamSet,
        module: &str,
        [fan_in, fan_out]: [usize; 2],
        lora: &Lora,
        share: &Share,
    ) -> Self {
        let [a_name, b_name] = names(module);
        let uniform = Init::Uniform(1.0 / (fan_in as f32).sqrt());
        let (a_shape, b_shape) = ([lora.rank, fan_in], [fan_out, lora.rank]);
        let [a_slice, b_slice] = match share {
            Share::Columns(ranges) => [Slice::from(a_shape), Slice::along(b_shape, 0, ranges)],
            Share::Rows(range) => {
                [Slice::along(a_shape, 1, std::slice::from_ref(range)), Slice::from(b_shape)]
            }
        };
        let a = params.adapter(a_name, a_slice, uniform);
        let b = params.adapter(b_name, b_slice, Init::Zeros);
        params.see_part_of_matrix(if let Share::Columns(_) = share { a } else { b });
        Self { a, b, scale: lora.scale() as f32 }
    }

    /// `x: [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        // Scaled where it is narrow.
        let times = |x, matrix| {
            let (weight, sum) = leaves.summed(matrix);
            linear(x, weight, None, WeightLayout::OutIn, sum)
        };
        times(times(x, self.a).mul_scalar(self.scale), self.b)
    }
}
