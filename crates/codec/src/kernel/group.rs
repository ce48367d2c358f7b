//! Symmetric fixed point on one group of values.

mod portable;

/// `code = clamp(round_half_even(x / step), -largest, largest) + largest`; `largest` everywhere if `step` is 0.
/// `largest` is at most 32767.
pub(crate) fn quantize(values: &[f32], step: f32, largest: u16, codes: &mut [u16]) {
    portable::quantize(values, step, largest, codes);
}

/// `x = (code - largest) * step`.
pub(crate) fn dequantize(codes: &[u16], step: f32, largest: u16, values: &mut [f32]) {
    portable::dequantize(codes, step, largest, values);
}
