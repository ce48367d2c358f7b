use crate::kernel::{LANES, divisor, fold_lanes};

/// Adding this rounds a float in `0..2^23` to an integer, half to even, and leaves that integer in the lowest bits.
const ROUNDER: f32 = 8_388_608.0; // 2^23

// `f32::min` and `f32::max` spend instructions on NaN, which cannot occur here.
fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

pub(super) fn top_two(tile: &[f32]) -> (f32, f32) {
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

pub(super) fn range(tile: &[f32]) -> (f32, f32) {
    let (mut low, mut high) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    let (chunks, rest) = tile.as_chunks::<LANES>();
    for chunk in chunks {
        for ((low, high), value) in low.iter_mut().zip(&mut high).zip(chunk) {
            (*low, *high) = (min(*low, *value), max(*high, *value));
        }
    }
    let low = rest.iter().copied().fold(fold_lanes(low, min), min);
    let high = rest.iter().copied().fold(fold_lanes(high, max), max);
    (low, high)
}

pub(super) fn quantize(tile: &[f32], zero: f32, step: f32, largest: u16, codes: &mut [u16]) {
    let (limit, step) = (f32::from(largest), divisor(step));
    for (code, value) in codes.iter_mut().zip(tile) {
        let steps = min(max((value - zero) / step, 0.0), limit);
        *code = (steps + ROUNDER).to_bits() as u16;
    }
}

pub(super) fn dequantize(codes: &[u16], zero: f32, step: f32, tile: &mut [f32]) {
    for (value, code) in tile.iter_mut().zip(codes) {
        *value = f32::from(*code) * step + zero;
    }
}
