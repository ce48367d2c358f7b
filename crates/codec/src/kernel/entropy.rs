//! The entropy of allocation tiles (TAH-Quant, equations 1 and 2, with the minus sign that makes even tiles high), in
//! bits and in one pass: `- sum p log2 p` with `p_k = |y_k| / S` and `S = sum |y|` is `log2 S - (sum |y| log2 |y|) / S`.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod portable;
mod simd;

use super::log2::COARSE_ERROR;
use super::{Kernel, LANES, WHOLE};
use crate::element::Element;
use crate::scale::Factors;
use crate::simd::Simd;

/// Keeps logarithms finite and the entropy of an all-zero tile 0 (`epsilon` and `varsigma` of the equations). Tiles
/// are scaled by the message scale, beside which it is small.
const EPSILON: f32 = 1e-12;

/// `H = (S log2(S + 1e-12) - sum |y_k| log2(|y_k| + 1e-12)) / (S + 1e-12)` of every allocation tile, `y` being the
/// scaled values.
///
/// Both sums run over 16 lanes, element `i` in lane `i % 16`, starting from 0 and in the order of the elements; then
/// lane `j` takes lane `j + 8`, then `j + 4`, `j + 2` and `j + 1`.
pub(crate) struct Entropies<'a, E> {
    /// Allocation tiles, one behind the other.
    pub(crate) x: &'a [E],
    /// Values of an allocation tile.
    pub(crate) len: usize,
    pub(crate) scale: Factors,
    /// One entropy a tile.
    pub(crate) out: &'a mut [f32],
}

impl<E: Element> Kernel for Entropies<'_, E> {
    type Output = ();

    fn portable(self) {
        for (tile, out) in self.x.chunks_exact(self.len).zip(self.out) {
            *out = portable::entropy(tile, self.scale);
        }
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let Some(scale) = self.scale.single() else { return self.portable() };
        // The constant makes a copy without loops over the parts of a tile.
        match self.len {
            WHOLE => simd::entropies(simd, self.x, WHOLE, scale, self.out),
            len if len.is_multiple_of(LANES) => simd::entropies(simd, self.x, len, scale, self.out),
            _ => self.portable(),
        }
    }
}

/// Entropies like those of [`Entropies`], none further off than [`margin`], in less time: what most tiles need to be found
/// far from the edge between high and low. They may differ from one instruction set to the next.
pub(crate) struct Estimates<'a, E>(pub(crate) Entropies<'a, E>);

impl<E: Element> Kernel for Estimates<'_, E> {
    type Output = ();

    fn portable(self) {
        self.0.portable();
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let Entropies { x, len, scale, out } = self.0;
        match (scale.single(), len) {
            (Some(scale), WHOLE) => simd::estimates(simd, x, WHOLE, scale, out),
            (Some(scale), len) if len.is_multiple_of(LANES) => simd::estimates(simd, x, len, scale, out),
            _ => Entropies { x, len, scale, out }.portable(),
        }
    }
}

/// The most by which [`Estimates`] of tiles of `len` values differ from [`Entropies`].
///
/// An entropy is a mean of logarithms, so it is off by no more than they are: [`COARSE_ERROR`], and `2.3e-6 + 1e-7 * 40` on
/// the other side. Rounding adds, on both sides, one unit in the last place for each term of a lane and for some sixteen
/// operations more, on values up to `40 + log2 len` times the sum.
pub(crate) fn margin(len: usize) -> f32 {
    let rounding = (len.div_ceil(LANES) + 16) as f32 * f32::EPSILON * (40.0 + (len as f32).log2());
    COARSE_ERROR + 1e-5 + rounding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::kernel::log2::log2;

    /// On every instruction set, for tiles of any magnitude and shape.
    #[test]
    fn estimates_keep_their_margin() {
        for len in [16, 64, 192, 1024] {
            let mut tiles = values(40 * len as u32);
            for (i, value) in tiles.iter_mut().enumerate() {
                // From the largest scaled value down to subnormal numbers; some spikes, some even tiles, a zero tile.
                let tile = i / len;
                *value *= 8.0 * 0.0625_f32.powf(tile as f32) * if i % len == tile { 100.0 } else { 1.0 };
                *value = if tile % 7 == 3 { value.signum() * 0.5_f32.powf(tile as f32) } else { *value };
                *value = if tile == 39 { 0.0 } else { *value };
            }
            let run = |estimate: bool, isa: Isa| {
                let mut out = [f32::NAN; 40];
                let entropies = Entropies { x: &tiles, len, scale: Factors::ONE, out: &mut out };
                if estimate {
                    isa.run(Estimates(entropies));
                } else {
                    isa.run(entropies);
                }
                out
            };
            for isa in Isa::available() {
                for (estimate, entropy) in run(true, isa).into_iter().zip(run(false, isa)) {
                    assert!((estimate - entropy).abs() <= margin(len), "{isa}: {estimate} for {entropy}");
                }
            }
        }
    }

    /// Values of full precision over six binades.
    fn values(len: u32) -> Vec<f32> {
        (0..len)
            .map(|i| {
                let hash = i.wrapping_add(1).wrapping_mul(0x9e37_79b9);
                f32::from_bits(hash & 0x8000_0000 | (124 + hash % 6) << 23 | (hash >> 5 & 0x007f_ffff))
            })
            .collect()
    }

    fn entropy(tile: &[f32]) -> f32 {
        let mut out = [f32::NAN];
        Entropies { x: tile, len: tile.len(), scale: Factors::ONE, out: &mut out }.portable();
        out[0]
    }

    /// The sum as the documentation words it.
    fn sum_by_lanes(terms: &[f32]) -> f32 {
        let mut lane = [0.0; LANES];
        for (i, term) in terms.iter().enumerate() {
            lane[i % 16] += term;
        }
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|j| lane[j] + lane[j + 8]);
        let [a, b, c, d] = [a + e, b + f, c + g, d + h];
        (a + c) + (b + d)
    }

    #[test]
    fn order_of_the_sums_is_the_documented_one() {
        for len in [8, 16, 24, 64, 128, 200, 1000] {
            let tile = values(len);
            let magnitudes: Vec<f32> = tile.iter().map(|a| a.abs()).collect();
            let terms: Vec<f32> = magnitudes.iter().map(|a| a * log2(a + 1e-12)).collect();
            let (sum, weighted) = (sum_by_lanes(&magnitudes), sum_by_lanes(&terms));
            let total = sum + 1e-12;
            assert_eq!(entropy(&tile), (sum * log2(total) - weighted) / total, "{len} values");
        }
    }

    /// The same on every platform: an entropy compared on one machine must compare alike on another.
    #[test]
    fn bits_are_these() {
        let bits = [8, 64, 200].map(|len| entropy(&values(len)).to_bits());
        assert_eq!(bits.map(|bits| format!("{bits:#010x}")), ["0x401d5e62", "0x40a931dd", "0x40dce7c1"]);
    }

    #[test]
    fn even_tiles_are_high_and_spiky_ones_low() {
        let even = entropy(&[-3.0; 64]);
        assert!((even - 6.0).abs() < 1e-5, "{even}");
        let mut spike = [0.0; 64];
        spike[5] = -2.0;
        assert!(entropy(&spike).abs() < 1e-6);
        assert_eq!(entropy(&[0.0; 64]), 0.0);
    }
}
