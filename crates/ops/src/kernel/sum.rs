//! Sums of two slices.

use pulp::Simd;

use super::lanes::Lanewise;

/// Adds the input to the output.
#[derive(Clone, Copy)]
pub(crate) struct Add;

impl Lanewise<1, 1> for Add {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x]: [S::f32s; 1], [sum]: [S::f32s; 1]) -> [S::f32s; 1] {
        [simd.add_f32s(sum, x)]
    }
}
