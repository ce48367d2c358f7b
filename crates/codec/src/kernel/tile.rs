//! The asymmetric quantizer of one tile (TAH-Quant, section 3.3), and what it needs to know of the tile.

mod portable;

/// The two largest magnitudes of a tile, largest first; equal if the largest occurs twice. At least two finite values.
pub(crate) fn top_two(tile: &[f32]) -> (f32, f32) {
    portable::top_two(tile)
}

/// `(min, max)` of a tile of finite values, where a zero may have either sign.
pub(crate) fn range(tile: &[f32]) -> (f32, f32) {
    portable::range(tile)
}

/// `code = round_half_even(clamp((x - zero) / step, 0, largest))`; 0 everywhere if `step` is 0.
/// `largest` is at most 255.
pub(crate) fn quantize(tile: &[f32], zero: f32, step: f32, largest: u16, codes: &mut [u16]) {
    portable::quantize(tile, zero, step, largest, codes);
}

/// `x = code * step + zero`, rounded after each operation.
pub(crate) fn dequantize(codes: &[u16], zero: f32, step: f32, tile: &mut [f32]) {
    portable::dequantize(codes, zero, step, tile);
}
