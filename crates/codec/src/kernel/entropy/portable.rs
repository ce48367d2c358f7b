use super::EPSILON;
use crate::element::Element;
use crate::kernel::log2::log2;
use crate::kernel::{LANES, fold_lanes};
use crate::scale::Factors;

pub(super) fn entropy<E: Element>(tile: &[E], scale: Factors) -> f32 {
    let (mut sums, mut weighted) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |chunk: &[E; LANES]| {
        for ((sum, weighted), value) in sums.iter_mut().zip(&mut weighted).zip(chunk) {
            let magnitude = scale.apply(value.to_f32()).abs();
            *sum += magnitude;
            *weighted += magnitude * log2(magnitude + EPSILON);
        }
    };
    let (chunks, rest) = tile.as_chunks();
    chunks.iter().for_each(&mut add);
    if !rest.is_empty() {
        // Zeros do not change the sums.
        let mut last = [E::default(); LANES];
        last[..rest.len()].copy_from_slice(rest);
        add(&last);
    }
    let (sum, weighted) = (fold_lanes(sums, |a, b| a + b), fold_lanes(weighted, |a, b| a + b));
    let total = sum + EPSILON;
    (sum * log2(total) - weighted) / total
}
