#![expect(clippy::needless_pass_by_value, reason = "a run holds the only references to its outputs")]
#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::f16;

use super::{Decode, OUTLIER};
use crate::element::Element;
use crate::kernel::{BLOCK, LANES, WHOLE, bits, hadamard};
use crate::simd::Simd;

/// Tiles of `tile` values, a multiple of [`WHOLE`].
#[inline(always)]
pub(super) fn decode<S: Simd, E: Element>(simd: S, run: Decode<'_, E>, tile: usize) {
    match run.scale.folded() {
        Some(factor) => decode_blocks::<S, E, true>(simd, run, tile, factor),
        None => decode_blocks::<S, E, false>(simd, run, tile, 1.0),
    }
}

/// The message scale is `factor` of the parameters, or else it is multiplied to the values.
#[inline(always)]
fn decode_blocks<S: Simd, E: Element, const FOLDED: bool>(
    simd: S,
    run: Decode<'_, E>,
    tile: usize,
    factor: f32,
) {
    let factors = run.scale.unscaling().0;
    let mut codes = run.codes;
    let blocks = run.zeros.chunks(BLOCK).zip(run.scales.chunks(BLOCK)).zip(run.pivots.chunks(BLOCK));
    let outs = run.widths.chunks(BLOCK).zip(run.out.chunks_mut(BLOCK * tile));
    for (((zeros, scales), pivots), (widths, out)) in blocks.zip(outs) {
        let zero = parameters(simd, zeros, factor, u16::MAX);
        let step = parameters(simd, scales, factor, !OUTLIER);
        for (i, out) in out.chunks_exact_mut(tile).enumerate() {
            let (width, step, zero) = (u32::from(widths[i]), simd.splat(step[i]), simd.splat(zero[i]));
            let outlier = u16::from_le_bytes(scales[i]) & OUTLIER != 0;
            if !outlier || tile == WHOLE {
                for out in out.as_chunks_mut::<WHOLE>().0 {
                    let mut values;
                    (values, codes) = dequantize(simd, width, step, zero, codes);
                    if outlier {
                        values = hadamard::transform_whole(simd, values);
                    }
                    for (v, out) in values.into_iter().zip(out.as_chunks_mut().0) {
                        E::store(simd, if FOLDED { v } else { unscale(simd, v, factors) }, out);
                    }
                }
            } else {
                let values = &mut run.scratch[..tile];
                for out in values.as_chunks_mut::<WHOLE>().0 {
                    let part;
                    (part, codes) = dequantize(simd, width, step, zero, codes);
                    for (v, out) in part.into_iter().zip(out.as_chunks_mut().0) {
                        simd.store(v, out);
                    }
                }
                hadamard::transform_simd(simd, values);
                for (v, out) in values.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                    let v = simd.load(v);
                    E::store(simd, if FOLDED { v } else { unscale(simd, v, factors) }, out);
                }
            }
            // A tile that is no outlier tile has pivot 0.
            out.swap(0, usize::from(pivots[i]));
        }
    }
}

#[inline(always)]
fn unscale<S: Simd>(simd: S, v: S::Floats, [first, second]: [f32; 2]) -> S::Floats {
    let v = simd.mul(simd.mul(v, simd.splat(first)), simd.splat(second));
    simd.max(simd.min(v, simd.splat(f32::MAX)), simd.splat(f32::MIN))
}

/// The values of the codes in front, and what is behind them.
#[inline(always)]
fn dequantize<S: Simd>(
    simd: S,
    width: u32,
    step: S::Floats,
    zero: S::Floats,
    codes: &[u8],
) -> ([S::Floats; 4], &[u8]) {
    let mut values = simd.codes_to_floats(simd.unpack(width, codes));
    for value in &mut values {
        *value = simd.add(simd.mul(*value, step), zero);
    }
    (values, &codes[bits::packed_len(WHOLE, width)..])
}

/// A block's parameters, those bits of them that are in `mask`, times `factor`.
#[inline(always)]
fn parameters<S: Simd>(simd: S, wire: &[[u8; 2]], factor: f32, mask: u16) -> [f32; LANES] {
    let mut half = [f16::ZERO; LANES];
    for (half, wire) in half.iter_mut().zip(wire) {
        *half = f16::from_bits(u16::from_le_bytes(*wire) & mask);
    }
    let mut values = [0.0; LANES];
    simd.store(simd.mul(simd.load_f16(&half), simd.splat(factor)), &mut values);
    values
}
