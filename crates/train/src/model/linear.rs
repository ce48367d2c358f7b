//! Linear layers over the last dimension.

use burn::tensor::Tensor;

use super::{Init, Leaves, Matrix, ParamSet, Vector};

/// How the file stores the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `[in, out]`, GPT-2's `Conv1D`.
    InOut,
    /// `[out, in]`, everyone else's `Linear`.
    OutIn,
}

/// `y = x W (+ b)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: Matrix,
    bias: Option<Vector>,
    layout: Layout,
}

impl Linear {
    /// A layer without bias, its weight stored `[out, in]`.
    pub(crate) fn plain(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let weight = params.matrix(format!("{name}.weight"), [fan_out, fan_in], Init::Normal(std));
        Self { weight, bias: None, layout: Layout::OutIn }
    }

    /// A layer with bias, its weight stored `[out, in]`.
    pub(crate) fn biased(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let plain = Self::plain(params, name, [fan_in, fan_out], std);
        let bias = Some(params.vector(format!("{name}.bias"), fan_out, Init::Zeros));
        Self { bias, ..plain }
    }

    /// A layer with bias, its weight stored `[in, out]`.
    pub(crate) fn conv1d(params: &mut ParamSet, name: &str, [fan_in, fan_out]: [usize; 2], std: f32) -> Self {
        let weight = params.matrix(format!("{name}.weight"), [fan_in, fan_out], Init::Normal(std));
        let bias = Some(params.vector(format!("{name}.bias"), fan_out, Init::Zeros));
        Self { weight, bias, layout: Layout::InOut }
    }

    /// `x: [rows, in]` to `[rows, out]`.
    pub(crate) fn forward(&self, leaves: &Leaves, x: Tensor<2>) -> Tensor<2> {
        let weight = leaves.matrix(self.weight);
        let y = match self.layout {
            Layout::InOut => x.matmul(weight),
            Layout::OutIn => x.matmul(weight.transpose()),
        };
        match self.bias {
            Some(bias) => y + leaves.vector(bias).unsqueeze::<2>(),
            None => y,
        }
    }
}
