//! The inner loops. Each has a dispatcher, the file named after it, which states what every implementation
//! computes to the bit, and a folder with `portable.rs`, plain code, and `simd.rs`, the same over the operations of
//! [`Simd`], compiled for each instruction set. All arithmetic is `f32`, fused only where that changes no bit, and sums run over
//! [`LANES`] interleaved lanes and end in one fixed tree, so that every implementation gives the same bytes.
//! `docs/format.md` is the normative text.

pub(crate) mod bits;
pub(crate) mod convert;
pub(crate) mod difference;
pub(crate) mod entropy;
pub(crate) mod group;
pub(crate) mod hadamard;
pub(crate) mod log2;
pub(crate) mod scan;
pub(crate) mod tile;

use crate::simd::Simd;

/// Interleaved lanes of a sum: element `i` belongs to lane `i % LANES`.
pub(crate) const LANES: usize = 16;

/// Tiles or groups whose parameters are computed side by side, one a lane.
pub(crate) const BLOCK: usize = LANES;

/// Values that vector kernels quantize at once. Tiles and groups of a multiple of this length need no care; shorter ones fill
/// a part of it.
pub(crate) const WHOLE: usize = crate::simd::CODES;

/// An inner loop with its arguments; [`Isa::run`](crate::Isa) computes it.
pub(crate) trait Kernel: Sized {
    type Output;

    /// In plain code.
    fn portable(self) -> Self::Output;

    /// The same bits with vector operations. Implementations are `#[inline(always)]`, and so is what they call.
    fn simd<S: Simd>(self, simd: S) -> Self::Output;
}

/// Combines the lanes: `j` with `j + 8`, then with `j + 4`, `j + 2` and `j + 1`.
#[inline]
fn fold_lanes<T: Copy>(mut lanes: [T; LANES], combine: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = combine(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// What to multiply with in order to quantize with this step: its reciprocal, or 0 for 0, so that every product is a
/// number and the codes of a group without extent are those of 0. `step` is an f16 value, so no reciprocal overflows.
fn reciprocal(step: f32) -> f32 {
    if step == 0.0 { 0.0 } else { 1.0 / step }
}
