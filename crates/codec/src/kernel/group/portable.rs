use crate::kernel::divisor;

/// Adding this rounds a float of magnitude below `2^22` to an integer, half to even, and leaves that integer in
/// the lowest bits.
const ROUNDER: f32 = 12_582_912.0; // 1.5 * 2^23

pub(super) fn quantize(values: &[f32], step: f32, largest: u16, codes: &mut [u16]) {
    let (limit, step) = (f32::from(largest), divisor(step));
    for (code, value) in codes.iter_mut().zip(values) {
        let rounded = (value / step).clamp(-limit, limit) + ROUNDER;
        *code = (rounded.to_bits() as u16).wrapping_add(largest);
    }
}

pub(super) fn dequantize(codes: &[u16], step: f32, largest: u16, values: &mut [f32]) {
    for (value, code) in values.iter_mut().zip(codes) {
        *value = (i32::from(*code) - i32::from(largest)) as f32 * step;
    }
}
