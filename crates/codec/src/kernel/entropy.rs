//! The entropy of an allocation tile (TAH-Quant, equations 1 and 2, with the minus sign that makes even tiles high).

mod portable;

/// `epsilon` of equation 1 and `varsigma` of equation 2. The tile was scaled by the message scale.
const EPSILON: f32 = 1e-12;

/// `H = - sum p_k ln(p_k + 1e-12)` with `p_k = |a_k| / (sum |a| + 1e-12)`.
///
/// The quotient is `|a_k| * (1 / (sum + 1e-12))`. Both sums run over 16 lanes, element `i` in lane `i % 16`,
/// starting from 0 and in the order of the elements; then lane `j` takes lane `j + 8`, then `j + 4`, `j + 2` and
/// `j + 1`. The sum of `p ln(p + 1e-12)` is subtracted from 0.
pub(crate) fn entropy(tile: &[f32]) -> f32 {
    portable::entropy(tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::LANES;
    use crate::kernel::ln::ln;

    /// Values of full precision over six binades.
    fn values(len: u32) -> Vec<f32> {
        (0..len)
            .map(|i| {
                let hash = i.wrapping_add(1).wrapping_mul(0x9e37_79b9);
                f32::from_bits(hash & 0x8000_0000 | (124 + hash % 6) << 23 | (hash >> 5 & 0x007f_ffff))
            })
            .collect()
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
            let reciprocal = 1.0 / (sum_by_lanes(&magnitudes) + 1e-12);
            let terms: Vec<f32> =
                magnitudes.iter().map(|a| a * reciprocal).map(|p| p * ln(p + 1e-12)).collect();
            assert_eq!(entropy(&tile), 0.0 - sum_by_lanes(&terms), "{len} values");
        }
    }

    /// The same on every platform: an entropy compared on one machine must compare alike on another.
    #[test]
    fn bits_are_these() {
        let bits = [8, 64, 200].map(|len| entropy(&values(len)).to_bits());
        assert_eq!(bits.map(|bits| format!("{bits:#010x}")), ["0x3fda28c8", "0x406a8dc7", "0x40991eae"]);
    }

    #[test]
    fn even_tiles_are_high_and_spiky_ones_low() {
        let even = entropy(&[-3.0; 64]);
        assert!((even - 64.0_f32.ln()).abs() < 1e-5, "{even}");
        let mut spike = [0.0; 64];
        spike[5] = -2.0;
        assert!(entropy(&spike).abs() < 1e-6);
        assert_eq!(entropy(&[0.0; 64]), 0.0);
    }
}
