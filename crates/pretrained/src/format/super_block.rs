//! ggml's blocks of 256 values, whose groups have quantized scales of their own.

use super::half_at;

/// `d, d_min: f16, scales: [u8; 12], q: [u4; 256]`; in group `g` of 32: `y = (d scale_g) q - d_min min_g`.
///
/// 32 bytes of `q` hold two groups, the first in the low bits.
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let groups = Groups::new(block);
    let quants = block[16..].chunks_exact(32);
    for (pair, (out, q)) in out.chunks_exact_mut(64).zip(quants).enumerate() {
        let (low, high) = out.split_at_mut(32);
        let (scale, min) = groups.scale_and_min(2 * pair);
        low.iter_mut().zip(q).for_each(|(y, q)| *y = scale * f32::from(q & 15) - min);
        let (scale, min) = groups.scale_and_min(2 * pair + 1);
        high.iter_mut().zip(q).for_each(|(y, q)| *y = scale * f32::from(q >> 4) - min);
    }
}

/// As [`q4_k`], with `high: [u8; 32]` in front of `q`: bit `g` of byte `j` is the fifth bit of value `j` in group `g`.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let groups = Groups::new(block);
    let (fifths, quants) = block[16..].split_at(32);
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, min) = groups.scale_and_min(group);
        let q = &quants[group / 2 * 32..][..32];
        for (y, (q, fifth)) in out.iter_mut().zip(q.iter().zip(fifths)) {
            let four = q >> (group % 2 * 4) & 15;
            *y = scale * f32::from(four | (fifth >> group & 1) << 4) - min;
        }
    }
}

/// `low: [u4; 256], high: [u2; 256], scales: [i8; 16], d: f16`; in group `g` of 16: `y = (d scale_g) (q - 32)`.
///
/// Each half of the block has 64 bytes of `low` and 32 of `high`. Its quarter `k` of 32 values takes bits `2k` and up
/// of `high`, and of `low` the first or second 32 bytes by turns, their low bits in quarters 0 and 1.
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, rest) = block.split_at(128);
    let (high, scales) = rest.split_at(64);
    let d = half_at(block, 208);
    for (quarter, out) in out.chunks_exact_mut(32).enumerate() {
        let (half, k) = (quarter / 4, quarter % 4);
        let low = &low[64 * half + 32 * (k % 2)..][..32];
        let high = &high[32 * half..][..32];
        for (j, y) in out.iter_mut().enumerate() {
            let q = (low[j] >> (k / 2 * 4) & 15) | (high[j] >> (2 * k) & 3) << 4;
            let scale = f32::from(scales[2 * quarter + j / 16].cast_signed());
            *y = d * scale * f32::from(i16::from(q) - 32);
        }
    }
}

/// The scales and minima of the 8 groups of a Q4_K or Q5_K block.
struct Groups<'a> {
    d: f32,
    d_min: f32,
    /// Six bits each: bytes 0 to 3 the scales of groups 0 to 3, bytes 4 to 7 their minima, bytes 8 to 11 the low four
    /// bits of scale and minimum of groups 4 to 7, whose upper two are on top of bytes 0 to 3 and 4 to 7.
    packed: &'a [u8],
}

impl<'a> Groups<'a> {
    fn new(block: &'a [u8]) -> Self {
        Self { d: half_at(block, 0), d_min: half_at(block, 2), packed: &block[4..16] }
    }

    fn scale_and_min(&self, group: usize) -> (f32, f32) {
        let packed = self.packed;
        let (scale, min) = if group < 4 {
            (packed[group] & 63, packed[group + 4] & 63)
        } else {
            let low = packed[group + 4];
            (low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4)
        };
        (self.d * f32::from(scale), self.d_min * f32::from(min))
    }
}
