//! The number format a run computes in.

use std::fmt;

use burn::tensor::{FloatDType, Tensor};
use serde::{Deserialize, Serialize};

/// Number format of activations, their gradients, and the weights of linear layers where they enter products.
///
/// Parameters, their gradients and the optimizer's moments are `f32` always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits with the range of `f32`. The CPU has it for storage: arithmetic is in `f32`.
    Bf16,
}

impl Dtype {
    /// `tensor` in this format, rounded to nearest.
    pub(crate) fn cast<const D: usize>(self, tensor: Tensor<D>) -> Tensor<D> {
        tensor.cast(match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}
