//! How a linear layer is cut.

use std::ops::Range;
use std::slice;

use thinwire_ops::WeightLayout;

use super::Slice;

/// A rank's share of a layer `y = x W`, with `W` as `[in, out]`.
#[derive(Clone, Debug)]
pub(crate) enum Share {
    /// Some of the results, from all inputs.
    Columns(Vec<Range<usize>>),
    /// A summand of all results, from some of the inputs.
    Rows(Range<usize>),
}

impl Share {
    /// That of the weight, as it is stored.
    pub(super) fn of_weight(&self, [fan_in, fan_out]: [usize; 2], layout: WeightLayout) -> Slice {
        let (shape, of_in, of_out) = match layout {
            WeightLayout::InOut => ([fan_in, fan_out], 0, 1),
            WeightLayout::OutIn => ([fan_out, fan_in], 1, 0),
        };
        match self {
            Self::Columns(ranges) => Slice::along(shape, of_out, ranges),
            Self::Rows(range) => Slice::along(shape, of_in, slice::from_ref(range)),
        }
    }

    /// That of the bias.
    pub(super) fn of_bias(&self, fan_out: usize) -> Slice {
        match self {
            Self::Columns(ranges) => Slice::along([fan_out], 0, ranges),
            Self::Rows(_) => Slice::from([fan_out]),
        }
    }

    /// Those of an adapter's `A: [rank, in]` and `B: [out, rank]`: one is cut as the layer is, the other one every rank has.
    pub(super) fn of_adapter(&self, [fan_in, fan_out]: [usize; 2], rank: usize) -> [Slice; 2] {
        let (a, b) = ([rank, fan_in], [fan_out, rank]);
        match self {
            Self::Columns(ranges) => [Slice::from(a), Slice::along(b, 0, ranges)],
            Self::Rows(range) => [Slice::along(a, 1, slice::from_ref(range)), Slice::from(b)],
        }
    }
}
