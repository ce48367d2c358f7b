//! Of [`BLOCK`] groups at a time the steps are computed side by side, one group a lane.

#![expect(clippy::needless_pass_by_value, reason = "a run holds the only references to its outputs")]
#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::f16;

use super::{BYTE, Decode, Encode, LEAST_STEP, StepRounding, ZeroPoints, largest};
use crate::element::Element;
use crate::kernel::{BLOCK, LANES, WHOLE, bits};
use crate::simd::{Combine, Simd, fold_rows};

/// Values of a multiple of [`WHOLE`], in whole groups. `scale` is not so far from 1 that its product
/// with a reciprocal overflows or is subnormal.
#[inline(always)]
pub(super) fn encode<S: Simd, E: Element>(simd: S, run: Encode<'_, E>, scale: f32) {
    let limit = largest(run.bits);
    let (low, high) = (simd.splat(-f32::from(limit)), simd.splat(limit.into()));
    let scale = simd.splat(scale);
    let mut out = run.codes;
    let mut rows = [[simd.splat(0.0)]; BLOCK];
    for (x, wire) in run.x.chunks(BLOCK * run.group).zip(run.steps.chunks_mut(BLOCK)) {
        let max = max_abs(simd, x, run.group, scale, &mut rows);
        let (steps, reciprocals) = steps(simd, simd.div(max, high), run.rounding, scale);
        for (wire, step) in wire.iter_mut().zip(steps) {
            *wire = step.to_le_bytes();
        }
        for (i, x) in x.as_chunks::<WHOLE>().0.iter().enumerate() {
            let mut quotients = vectors_of(simd, &reciprocals, run.group, i);
            for (quotient, x) in quotients.iter_mut().zip(x.as_chunks().0) {
                *quotient = simd.mul(E::load(simd, x), *quotient);
                if run.rounding == StepRounding::Nearest {
                    *quotient = simd.max(simd.min(*quotient, high), low);
                } // else not above `limit` by as much as half: the step is not below the exact one
            }
            if run.bits <= BYTE {
                simd.pack(run.bits, simd.round_to_codes(quotients, limit.into()), out);
            } else {
                simd.pack_wide(run.bits, quotients, limit.into(), out);
            }
            out = &mut out[bits::packed_len(WHOLE, run.bits)..];
        }
    }
}

/// What the values of chunk `chunk` of a block's [`WHOLE`] values have of a quantity of its groups.
#[inline(always)]
pub(super) fn vectors_of<S: Simd>(
    simd: S,
    of_groups: &[f32; BLOCK],
    group: usize,
    chunk: usize,
) -> [S::Floats; 4] {
    if group >= WHOLE {
        return [simd.splat(of_groups[chunk * WHOLE / group]); 4];
    }
    let mut vectors = [simd.splat(0.0); 4];
    for (i, vector) in vectors.iter_mut().enumerate() {
        let first = (chunk * WHOLE + i * LANES) / group;
        *vector = if group >= LANES {
            simd.splat(of_groups[first])
        } else {
            simd.replace(simd.splat(of_groups[first]), 0xff00, of_groups[first + 1])
        };
    }
    vectors
}

/// The largest scaled magnitude of each group of a block. Where there are fewer groups, the last lanes are anything.
#[inline(always)]
fn max_abs<S: Simd, E: Element>(
    simd: S,
    x: &[E],
    group: usize,
    scale: S::Floats,
    rows: &mut [[S::Floats; 1]; BLOCK],
) -> S::Floats {
    for (row, x) in rows.iter_mut().zip(x.chunks_exact(group)) {
        let mut max = simd.splat(0.0);
        let (vectors, half) = x.as_chunks();
        for x in vectors {
            max = simd.max(max, simd.abs(E::load(simd, x)));
        }
        if !half.is_empty() {
            let mut padded = [E::default(); LANES];
            padded[..half.len()].copy_from_slice(half);
            max = simd.abs(E::load(simd, &padded));
        }
        *row = [max];
    }
    let [max] = fold_rows::<Max, _, 1>(simd, rows);
    // Scaling keeps the order, so that the maximum alone is scaled.
    simd.mul(max, scale)
}

struct Max;

impl Combine<1> for Max {
    #[inline(always)]
    fn combine<S: Simd>(simd: S, [a]: [S::Floats; 1], [b]: [S::Floats; 1]) -> [S::Floats; 1] {
        [simd.max(a, b)]
    }
}

/// The steps of a block's groups and their reciprocals times `scale`: a power of two, so that it does not matter which
/// factor it multiplies first.
#[inline(always)]
fn steps<S: Simd>(
    simd: S,
    exact: S::Floats,
    rounding: StepRounding,
    scale: S::Floats,
) -> ([f16; LANES], [f32; LANES]) {
    let mut steps = [f16::ZERO; LANES];
    match rounding {
        StepRounding::Up => {
            simd.store_f16(exact, &mut steps);
            let below = simd.greater(exact, simd.load_f16(&steps));
            for (i, step) in steps.iter_mut().enumerate() {
                *step = f16::from_bits(step.to_bits() + (below >> i & 1));
            }
        }
        StepRounding::Nearest => simd.store_f16(simd.max(exact, simd.splat(LEAST_STEP)), &mut steps),
    }
    let mut reciprocals = [0.0; LANES];
    simd.store(simd.mul(simd.div(simd.splat(1.0), simd.load_f16(&steps)), scale), &mut reciprocals);
    (steps, reciprocals.map(|reciprocal| if reciprocal == f32::INFINITY { 0.0 } else { reciprocal }))
}

/// Values of a multiple of [`WHOLE`], in whole groups. `factor` is the message scale.
#[inline(always)]
pub(super) fn decode<S: Simd, E: Element>(simd: S, run: Decode<'_, E>, factor: f32) {
    // Codes of a byte and the largest have 8 bits, steps and other zero points 11: their products are exact.
    let mut minus_zero = simd.splat(-f32::from(largest(run.bits)));
    let mut codes = run.codes;
    let blocks = run.out.chunks_mut(BLOCK * run.group).zip(run.steps.chunks(BLOCK));
    for (block, (out, steps)) in blocks.enumerate() {
        let step = simd.mul(load_wire(simd, steps), simd.splat(factor));
        if let ZeroPoints::Each(zero_points) = run.zeros {
            minus_zero = simd.mul(load_wire(simd, &zero_points[block * BLOCK..]), simd.splat(-1.0));
        }
        let (mut steps, mut zeros) = ([0.0; LANES], [0.0; LANES]);
        simd.store(step, &mut steps);
        simd.store(simd.mul(step, minus_zero), &mut zeros);
        for (i, out) in out.as_chunks_mut::<WHOLE>().0.iter_mut().enumerate() {
            let step = vectors_of(simd, &steps, run.group, i);
            let zero = vectors_of(simd, &zeros, run.group, i);
            let values = if run.bits > BYTE {
                dequantize_wide(simd, run.bits, codes, step)
            } else if run.group >= WHOLE {
                simd.dequantize(run.bits, codes, step[0], zero[0])
            } else {
                let mut values = simd.codes_to_floats(simd.unpack(run.bits, codes));
                for (i, value) in values.iter_mut().enumerate() {
                    *value = simd.mul_add(*value, step[i], zero[i]);
                }
                values
            };
            codes = &codes[bits::packed_len(WHOLE, run.bits)..];
            for (v, out) in values.into_iter().zip(out.as_chunks_mut().0) {
                E::store(simd, v, out);
            }
        }
    }
}

/// The first parameters; where there are fewer, the last lanes are 0.
#[inline(always)]
fn load_wire<S: Simd>(simd: S, wire: &[[u8; 2]]) -> S::Floats {
    let mut half = [f16::ZERO; LANES];
    for (half, wire) in half.iter_mut().zip(wire) {
        *half = f16::from_le_bytes(*wire);
    }
    simd.load_f16(&half)
}

/// The values of codes of more bits than a byte holds, whose products with a step are rounded.
#[inline(always)]
fn dequantize_wide<S: Simd>(simd: S, bits: u32, codes: &[u8], step: [S::Floats; 4]) -> [S::Floats; 4] {
    let largest = simd.splat(largest(bits).into());
    let mut values = simd.unpack_wide(bits, codes);
    for (value, step) in values.iter_mut().zip(step) {
        *value = simd.add(simd.mul(simd.sub(*value, largest), step), simd.splat(0.0));
    }
    values
}
