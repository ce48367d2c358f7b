use crate::kernel::{LANES, fold_lanes};

/// [`MaxAbs`](super::MaxAbs) of `f32` values.
pub(crate) fn max_abs_f32(values: &[f32]) -> f32 {
    // Signed: with the sign bit cleared both orders agree, and the signed maximum is the cheap one in SSE2.
    let magnitude = |value: f32| (value.to_bits() & 0x7fff_ffff).cast_signed();
    let mut max = [0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (max, value) in max.iter_mut().zip(chunk) {
            *max = magnitude(*value).max(*max);
        }
    }
    let max = rest.iter().map(|&value| magnitude(value)).fold(fold_lanes(max, i32::max), i32::max);
    f32::from_bits(max.cast_unsigned())
}

/// [`MaxAbs`](super::MaxAbs) of the bit patterns of either 16-bit format.
pub(crate) fn max_abs_16(values: &[u16]) -> u16 {
    const WIDE: usize = 2 * LANES;
    let magnitude = |bits: u16| (bits & 0x7fff).cast_signed();
    let mut max = [0; WIDE];
    let (chunks, rest) = values.as_chunks::<WIDE>();
    for chunk in chunks {
        for (max, bits) in max.iter_mut().zip(chunk) {
            *max = magnitude(*bits).max(*max);
        }
    }
    rest.iter().map(|&bits| magnitude(bits)).chain(max).max().unwrap_or(0).cast_unsigned()
}

// `f32::min` and `f32::max` spend instructions on NaN, which cannot occur here.
pub(crate) fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// `b` if both are zeros.
pub(crate) fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `(min, max)` of values that are finite, at least one, where a zero may have either sign.
pub(crate) fn range(values: &[f32]) -> (f32, f32) {
    let (mut low, mut high) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for ((low, high), value) in low.iter_mut().zip(&mut high).zip(chunk) {
            (*low, *high) = (min(*low, *value), max(*high, *value));
        }
    }
    let low = rest.iter().copied().fold(fold_lanes(low, min), min);
    let high = rest.iter().copied().fold(fold_lanes(high, max), max);
    (low, high)
}
