//! What ranks train, and a tensor of which each has a piece.

use burn::tensor::Tensor;

use crate::model::{ParamSet, Part, Slice};
use crate::optim::AdamW;

/// What one rank of a stage trains, and its optimizer's state; handles that share their values with it.
#[derive(Clone, Debug)]
pub struct TrainedShare {
    pub(super) params: ParamSet,
    pub(super) optimizer: AdamW,
}

impl TrainedShare {
    /// That of a part and its optimizer.
    pub fn of((part, optimizer): (&Part, &AdamW)) -> Self {
        Self { params: part.params().clone(), optimizer: optimizer.clone() }
    }

    /// Its parameters.
    pub fn params(&self) -> &ParamSet {
        &self.params
    }
}

/// A tensor of a file, as the ranks have it.
pub(super) struct Pieces(Vec<(Slice, Tensor<1>)>);

impl Pieces {
    /// Those of the parameter at `index` of `shares`; `of` gives what is meant of it. `None` where a rank has nothing.
    pub(super) fn gather(
        shares: &[TrainedShare],
        index: usize,
        of: impl Fn(&TrainedShare) -> Option<Tensor<1>>,
    ) -> Option<Self> {
        let piece = |share: &TrainedShare| {
            let slice = share.params.iter().nth(index)?.slice.clone();
            Some((slice, of(share)?))
        };
        let mut pieces = shares.iter().map(piece).collect::<Option<Vec<_>>>()?;
        if pieces.first()?.0.is_whole() {
            pieces.truncate(1); // the others have the same
        }
        Some(Self(pieces))
    }

    /// Values of the whole tensor.
    pub(super) fn len(&self) -> usize {
        self.0[0].0.whole().iter().product()
    }

    /// Its values, in host memory.
    pub(super) fn join(&self) -> Vec<f32> {
        let values = |tensor: &Tensor<1>| {
            tensor.clone().into_data().try_into_vec::<f32>().expect("parameters and moments are f32")
        };
        if let [(_, whole)] = &*self.0 {
            return values(whole);
        }
        let mut whole = vec![0.0; self.len()];
        for (slice, piece) in &self.0 {
            slice.put(&values(piece), &mut whole);
        }
        whole
    }
}
