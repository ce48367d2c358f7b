#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use super::EPSILON;
use crate::element::Element;
use crate::kernel::log2::{COARSE, COEFFICIENTS};
use crate::kernel::{BLOCK, LANES};
use crate::simd::{Combine, Simd, fold_rows};

/// Tiles of a multiple of [`LANES`] values. The sums of [`BLOCK`] tiles are folded together, and their entropies computed together.
#[inline(always)]
pub(super) fn entropies<S: Simd, E: Element>(simd: S, x: &[E], len: usize, scale: f32, out: &mut [f32]) {
    of_blocks::<false, S, E>(simd, x, len, scale, out);
}

/// The same with a coarse logarithm of the values.
#[inline(always)]
pub(super) fn estimates<S: Simd, E: Element>(simd: S, x: &[E], len: usize, scale: f32, out: &mut [f32]) {
    of_blocks::<true, S, E>(simd, x, len, scale, out);
}

#[inline(always)]
fn of_blocks<const ESTIMATE: bool, S: Simd, E: Element>(
    simd: S,
    x: &[E],
    len: usize,
    scale: f32,
    out: &mut [f32],
) {
    let mut rows = [[simd.splat(0.0); 2]; BLOCK];
    for (x, out) in x.chunks(BLOCK * len).zip(out.chunks_mut(BLOCK)) {
        for (row, tile) in rows.iter_mut().zip(x.chunks_exact(len)) {
            *row = lane_sums::<ESTIMATE, S, E>(simd, tile, scale);
        }
        let [sum, weighted] = fold_rows::<Sums, _, 2>(simd, &rows);
        let total = simd.add(sum, simd.splat(EPSILON));
        let entropy = simd.div(simd.sub(simd.mul(sum, log2(simd, total)), weighted), total);
        let mut entropies = [0.0; LANES];
        simd.store(entropy, &mut entropies);
        out.copy_from_slice(&entropies[..out.len()]);
    }
}

struct Sums;

impl Combine<2> for Sums {
    #[inline(always)]
    fn combine<S: Simd>(simd: S, a: [S::Floats; 2], b: [S::Floats; 2]) -> [S::Floats; 2] {
        [simd.add(a[0], b[0]), simd.add(a[1], b[1])]
    }
}

/// The lanes of both sums of a tile.
#[inline(always)]
fn lane_sums<const ESTIMATE: bool, S: Simd, E: Element>(simd: S, tile: &[E], scale: f32) -> [S::Floats; 2] {
    let (scale, epsilon) = (simd.splat(scale), simd.splat(EPSILON));
    let (mut sum, mut weighted) = (simd.splat(0.0), simd.splat(0.0));
    for x in tile.as_chunks().0 {
        let magnitude = simd.abs(simd.mul(E::load(simd, x), scale));
        sum = simd.add(sum, magnitude);
        let v = simd.add(magnitude, epsilon);
        weighted = if ESTIMATE {
            simd.mul_add(magnitude, coarse_log2(simd, v), weighted)
        } else {
            simd.add(weighted, simd.mul(magnitude, log2(simd, v)))
        };
    }
    [sum, weighted]
}

/// [`log2`](crate::kernel::log2::log2) of every lane.
#[inline(always)]
fn log2<S: Simd>(simd: S, v: S::Floats) -> S::Floats {
    let t = simd.sub(simd.mantissa(v), simd.splat(1.0));
    let [rest @ .., last] = COEFFICIENTS;
    let mut quotient = simd.splat(last);
    for coefficient in rest.into_iter().rev() {
        quotient = simd.add(simd.mul(quotient, t), simd.splat(coefficient));
    }
    simd.add(simd.exponent(v), simd.mul(quotient, t))
}

/// The same, with an error of up to [`COARSE_ERROR`](crate::kernel::log2::COARSE_ERROR).
#[inline(always)]
fn coarse_log2<S: Simd>(simd: S, v: S::Floats) -> S::Floats {
    let m = simd.mantissa(v);
    let [c0, c1, c2, c3] = COARSE;
    let sum = simd.mul_add(simd.splat(c3), m, simd.splat(c2));
    let sum = simd.mul_add(sum, m, simd.splat(c1));
    simd.mul_add(sum, m, simd.add(simd.exponent(v), simd.splat(c0)))
}
