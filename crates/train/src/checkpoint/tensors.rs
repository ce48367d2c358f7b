//! Which tensors a unit's file holds.

use std::ops::Range;

use super::layout::Kind;
use crate::model::ParamSet;

/// Name and row-major shape of a tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorSpec {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

impl TensorSpec {
    /// Its size in the file.
    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * size_of::<f32>()
    }
}

/// The tensors for the parameters at `range` that training changes, in order: of each its value, or its two moments under the names that
/// `PyTorch`'s `AdamW` has for them.
pub(super) fn specs(params: &ParamSet, range: &Range<usize>, kind: Kind) -> Vec<TensorSpec> {
    let suffixes: &[&str] = match kind {
        Kind::Weights => &[""],
        Kind::Optimizer => &[".exp_avg", ".exp_avg_sq"],
    };
    params
        .trainable(range)
        .flat_map(|(_, parameter)| {
            suffixes.iter().map(|suffix| TensorSpec {
                name: format!("{}{suffix}", parameter.name),
                shape: parameter.slice.whole().to_vec(),
            })
        })
        .collect()
}
