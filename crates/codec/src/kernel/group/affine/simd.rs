//! Of [`BLOCK`] groups at a time the parameters are computed side by side, one group a lane.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::f16;

use super::{Encode, ZeroPoint, exact_step, largest};
use crate::element::Element;
use crate::kernel::group::simd::vectors_of;
use crate::kernel::scan::Range;
use crate::kernel::{BLOCK, LANES, WHOLE, bits};
use crate::simd::{Combine, Simd, fold_rows};

/// Values of a multiple of [`WHOLE`], in whole groups. `scale` is not so far from 1 that its product with a reciprocal
/// overflows or is subnormal.
#[inline(always)]
pub(super) fn encode<S: Simd, E: Element>(simd: S, run: Encode<'_, E>, scale: f32) {
    let largest = largest(run.bits);
    let mut out = run.codes;
    let mut rows = [[simd.splat(0.0); 2]; BLOCK];
    let parameters = run.steps.chunks_mut(BLOCK).zip(run.zeros.chunks_mut(BLOCK));
    for (x, (steps, zeros)) in run.x.chunks(BLOCK * run.group).zip(parameters) {
        let range = ranges(simd, x, run.group, scale, &mut rows);
        let of = parameters_of(simd, range, run.zero_point, largest, scale);
        for (i, (step, zero)) in steps.iter_mut().zip(zeros).enumerate() {
            (*step, *zero) = (of.steps[i].to_le_bytes(), of.zeros[i].to_le_bytes());
        }
        for (i, x) in x.as_chunks::<WHOLE>().0.iter().enumerate() {
            let per_step = vectors_of(simd, &of.per_step, run.group, i);
            let mut places = vectors_of(simd, &of.zero, run.group, i);
            for ((place, per_step), x) in places.iter_mut().zip(per_step).zip(x.as_chunks().0) {
                *place = simd.add(simd.mul(E::load(simd, x), per_step), *place);
            }
            // Clamped after they are rounded, which is the same as the other way round: a group reaches at most
            // `FARTHEST` steps from zero, but for the step's rounding.
            simd.pack(run.bits, simd.clamp_codes(run.bits, simd.round_to_codes(places, 0)), out);
            out = &mut out[bits::packed_len(WHOLE, run.bits)..];
        }
    }
}

/// The scaled extrema of each group of a block. Where there are fewer groups, the last lanes are those of others.
#[inline(always)]
fn ranges<S: Simd, E: Element>(
    simd: S,
    x: &[E],
    group: usize,
    scale: f32,
    rows: &mut [[S::Floats; 2]; BLOCK],
) -> [S::Floats; 2] {
    for (row, x) in rows.iter_mut().zip(x.chunks_exact(group)) {
        let (vectors, half) = x.as_chunks::<LANES>();
        let Some((first, vectors)) = vectors.split_first() else {
            let mut twice = [E::default(); LANES];
            twice[..half.len()].copy_from_slice(half);
            twice[half.len()..].copy_from_slice(half);
            *row = [E::load(simd, &twice); 2];
            continue;
        };
        let mut range = [E::load(simd, first); 2];
        for x in vectors {
            range = Range::combine(simd, range, [E::load(simd, x); 2]);
        }
        *row = range;
    }
    let [low, high] = fold_rows::<Range, _, 2>(simd, rows);
    // Scaling keeps the order, so that the extrema alone are scaled.
    [simd.mul(low, simd.splat(scale)), simd.mul(high, simd.splat(scale))]
}

/// The parameters of a block's groups, on the wire and as the codes need them.
struct Parameters {
    steps: [f16; LANES],
    zeros: [f16; LANES],
    /// Reciprocals of the steps times the scale: a power of two, so that it does not matter which factor it multiplies
    /// first.
    per_step: [f32; LANES],
    zero: [f32; LANES],
}

#[inline(always)]
fn parameters_of<S: Simd>(
    simd: S,
    [low, high]: [S::Floats; 2],
    zero_point: ZeroPoint,
    largest: f32,
    scale: f32,
) -> Parameters {
    let (mut lows, mut highs) = ([0.0; LANES], [0.0; LANES]);
    simd.store(low, &mut lows);
    simd.store(high, &mut highs);
    let mut exact = [0.0; LANES];
    for i in 0..LANES {
        exact[i] = exact_step(lows[i], highs[i], largest);
    }
    let mut steps = [f16::ZERO; LANES];
    simd.store_f16(simd.load(&exact), &mut steps);
    let rounded = simd.load_f16(&steps);
    let mut step = [0.0; LANES];
    simd.store(rounded, &mut step);
    let mut zero = [0.0; LANES];
    for i in 0..LANES {
        zero[i] = zero_point.of(lows[i], highs[i], step[i], largest);
    }
    let mut zeros = [f16::ZERO; LANES];
    simd.store_f16(simd.load(&zero), &mut zeros);
    simd.store(simd.load_f16(&zeros), &mut zero);
    let mut per_step = [0.0; LANES];
    simd.store(simd.mul(simd.div(simd.splat(1.0), rounded), simd.splat(scale)), &mut per_step);
    Parameters { steps, zeros, per_step, zero }
}
