#![expect(clippy::needless_pass_by_value, reason = "a run holds the only references to its outputs")]

use half::f16;

use super::{Decode, Encode, OUTLIER, RHO};
use crate::element::Element;
use crate::kernel::scan::{max, min, range};
use crate::kernel::{LANES, bits, fold_lanes, hadamard, reciprocal};

/// Adding this rounds a float in `0..2^23` to an integer, half to even, and leaves that integer in the lowest bits.
const ROUNDER: f32 = 8_388_608.0; // 2^23

/// The longest tile.
const MAX_TILE: usize = 1024;

pub(super) fn encode<E: Element>(run: Encode<'_, E>) {
    let (values, mut codes) = (&mut run.scratch[..run.tile], run.codes);
    let mut buffer = [0; MAX_TILE];
    for (i, x) in run.x.chunks_exact(run.tile).enumerate() {
        for (value, x) in values.iter_mut().zip(x) {
            *value = run.scale.apply(x.to_f32());
        }
        let width = u32::from(run.widths[i]);
        let tile = quantize(values, run.outlier_ratio, width, &mut buffer[..run.tile]);
        run.zeros[i] = tile.zero.to_le_bytes();
        run.scales[i] = (tile.scale.to_bits() | if tile.outlier { OUTLIER } else { 0 }).to_le_bytes();
        run.pivots[i] = tile.pivot;
        let packed;
        (packed, codes) = codes.split_at_mut(bits::packed_len(run.tile, width));
        bits::pack(width, &buffer[..run.tile], packed);
    }
}

pub(super) fn decode<E: Element>(run: Decode<'_, E>) {
    let (values, mut codes) = (&mut run.scratch[..run.tile], run.codes);
    let mut buffer = [0; MAX_TILE];
    for (i, out) in run.out.chunks_exact_mut(run.tile).enumerate() {
        let width = u32::from(run.widths[i]);
        let packed;
        (packed, codes) = codes.split_at(bits::packed_len(run.tile, width));
        bits::unpack(width, packed, &mut buffer[..run.tile]);
        let scale = u16::from_le_bytes(run.scales[i]);
        let (zero, step) =
            (f32::from(f16::from_le_bytes(run.zeros[i])), f32::from(f16::from_bits(scale & !OUTLIER)));
        for (value, code) in values.iter_mut().zip(&buffer) {
            *value = f32::from(*code) * step + zero;
        }
        if scale & OUTLIER != 0 {
            hadamard::transform(values);
            values.swap(0, usize::from(run.pivots[i]));
        }
        run.scale.undo(values);
        E::narrow(values, out);
    }
}

/// The parameters of one quantized tile.
struct Quantized {
    zero: f16,
    /// Not negative.
    scale: f16,
    outlier: bool,
    /// 0 if the tile is no outlier tile.
    pivot: u16,
}

/// Transforms the tile if it has an outlier (equations 3 and 4) and fills `codes`, `width` bits each.
fn quantize(values: &mut [f32], outlier_ratio: f32, width: u32, codes: &mut [u16]) -> Quantized {
    let (first, second) = top_two(values);
    let outlier = first > outlier_ratio * (second + RHO);
    let mut pivot = 0;
    if outlier {
        pivot =
            values.iter().position(|value| value.abs() == first).expect("the maximum is one of the values");
        values.swap(0, pivot);
        hadamard::transform(values);
    }
    let (low, high) = range(values);
    let zero = f16::from_f32(low + 0.0); // -0 + 0 is +0: which zero was found first does not matter
    let largest = ((1 << width) - 1) as f32;
    // Where `zero` was rounded up to the maximum or above, the tile is constant to half precision. The scale's sign is
    // the outlier flag, so it must not come from a zero.
    let scale = f16::from_f32(max(high - f32::from(zero), 0.0) / largest);
    let (zero_point, per_step) = (f32::from(zero), reciprocal(scale.into()));
    for (code, value) in codes.iter_mut().zip(values) {
        let steps = min(max((*value - zero_point) * per_step, 0.0), largest);
        *code = (steps + ROUNDER).to_bits() as u16;
    }
    Quantized { zero, scale, outlier, pivot: pivot as u16 }
}

/// The two largest magnitudes of a tile, largest first; equal if the largest occurs twice.
fn top_two(tile: &[f32]) -> (f32, f32) {
    let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
    let (chunks, rest) = tile.as_chunks::<LANES>();
    for chunk in chunks {
        for ((first, second), value) in first.iter_mut().zip(&mut second).zip(chunk) {
            (*first, *second) = insert((*first, *second), value.abs());
        }
    }
    let lanes = std::array::from_fn(|j| (first[j], second[j]));
    let largest = fold_lanes(lanes, |a, b| insert(insert(a, b.0), b.1));
    rest.iter().map(|value| value.abs()).fold(largest, insert)
}

fn insert((first, second): (f32, f32), magnitude: f32) -> (f32, f32) {
    (max(first, magnitude), max(second, min(first, magnitude)))
}
