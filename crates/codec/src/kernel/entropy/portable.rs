use super::EPSILON;
use crate::kernel::ln::ln;
use crate::kernel::{LANES, fold_lanes};

pub(super) fn entropy(tile: &[f32]) -> f32 {
    let reciprocal = 1.0 / (lane_sum(tile, f32::abs) + EPSILON);
    0.0 - lane_sum(tile, |value| {
        let p = value.abs() * reciprocal;
        p * ln(p + EPSILON)
    })
}

/// The sum of `term` over the tile. A zero-filled last chunk does not change it: both terms of a zero are zero.
#[inline]
fn lane_sum(tile: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let mut add = |chunk: &[f32; LANES]| {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += term(*value);
        }
    };
    let (chunks, rest) = tile.as_chunks();
    chunks.iter().for_each(&mut add);
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        add(&last);
    }
    fold_lanes(sums, |a, b| a + b)
}
