//! ggml's blocks of 32 values with one scale.
//!
//! The low four bits of byte `j` belong to value `j`, the high ones to value `j + 16`.

use super::half_at;

/// `d: f16, q: [u4; 32]`; `y = (q - 8) d`.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (j, &q) in block[2..].iter().enumerate() {
        out[j] = f32::from(i16::from(q & 15) - 8) * d;
        out[j + 16] = f32::from(i16::from(q >> 4) - 8) * d;
    }
}

/// `d, m: f16, q: [u4; 32]`; `y = q d + m`.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    for (j, &q) in block[4..].iter().enumerate() {
        out[j] = f32::from(q & 15) * d + m;
        out[j + 16] = f32::from(q >> 4) * d + m;
    }
}

/// `d: f16, high: u32, q: [u4; 32]`, bit `i` of `high` is the fifth of value `i`; `y = (q - 16) d`.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    let high = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
    let fifth = |i: usize| ((high >> i & 1) << 4) as i16;
    for (j, &q) in block[6..].iter().enumerate() {
        out[j] = f32::from((i16::from(q & 15) | fifth(j)) - 16) * d;
        out[j + 16] = f32::from((i16::from(q >> 4) | fifth(j + 16)) - 16) * d;
    }
}

/// `d: f16, q: [i8; 32]`; `y = q d`.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (y, &q) in out.iter_mut().zip(&block[2..]) {
        *y = f32::from(q.cast_signed()) * d;
    }
}
