//! The largest magnitude of a tensor, and whether all of it is finite, in one pass.
//!
//! Without its sign bit, the bit pattern of a float orders like its magnitude, infinity above every finite value
//! and NaN above infinity. So the maximum is an integer one, independent of the order.

mod portable;

/// `max |x|` by bit pattern: 0 for an empty slice, infinite or NaN if any value is.
pub(crate) fn max_abs_f32(values: &[f32]) -> f32 {
    portable::max_abs_f32(values)
}

/// [`max_abs_f32`] for the bit patterns of either 16-bit format.
pub(crate) fn max_abs_16(values: &[u16]) -> u16 {
    portable::max_abs_16(values)
}
