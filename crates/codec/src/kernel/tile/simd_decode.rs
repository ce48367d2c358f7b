#![expect(clippy::needless_pass_by_value, reason = "a run holds the only references to its outputs")]
#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::f16;

use super::{Decode, OUTLIER};
use crate::element::Element;
use crate::kernel::{BLOCK, LANES, WHOLE, bits, hadamard};
use crate::simd::{PACK_ROOM, Simd};

/// Tiles of `tile` values: 16, 32, or a multiple of [`WHOLE`].
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
            let width = u32::from(widths[i]);
            let outlier = u16::from_le_bytes(scales[i]) & OUTLIER != 0;
            let norm = if outlier && tile <= WHOLE { hadamard::exact_norm(tile) } else { 1.0 };
            let (step, zero) = (simd.splat(step[i] * norm), simd.splat(zero[i] * norm));
            if tile <= WHOLE {
                let mut values = if codes.len() >= bits::packed_len(WHOLE, width) {
                    simd.dequantize(width, codes, step, zero)
                } else {
                    let mut padded = [0; PACK_ROOM];
                    padded[..codes.len()].copy_from_slice(codes);
                    simd.dequantize(width, &padded, step, zero)
                };
                codes = &codes[bits::packed_len(tile, width)..];
                if outlier {
                    values = hadamard::transform_registers(simd, values, tile);
                }
                for (v, out) in values.into_iter().zip(out.as_chunks_mut().0) {
                    E::store(simd, if FOLDED { v } else { unscale(simd, v, factors) }, out);
                }
            } else {
                // Only an outlier tile goes through memory.
                let scratch = &mut run.scratch[..tile];
                for (i, out) in out.as_chunks_mut::<WHOLE>().0.iter_mut().enumerate() {
                    let values = simd.dequantize(width, codes, step, zero);
                    codes = &codes[bits::packed_len(WHOLE, width)..];
                    let scratch = scratch[i * WHOLE..].as_chunks_mut().0;
                    for ((v, out), scratch) in values.into_iter().zip(out.as_chunks_mut().0).zip(scratch) {
                        if outlier {
                            simd.store(v, scratch);
                        } else {
                            E::store(simd, if FOLDED { v } else { unscale(simd, v, factors) }, out);
                        }
                    }
                }
                if outlier {
                    hadamard::transform_simd(simd, scratch);
                    for (v, out) in scratch.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                        let v = simd.load(v);
                        E::store(simd, if FOLDED { v } else { unscale(simd, v, factors) }, out);
                    }
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
