//! Numbers drawn by name instead of in turn: the draw of (key, row, column) is the same whoever asks for it, and when.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use crate::simd::Simd;

/// Names a set of draws: one matrix in one step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// The key of a run.
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The key of one of many things below this key: a step, then a micro-batch, then a layer.
    #[must_use]
    pub const fn child(self, number: u64) -> Self {
        Self(mix(self.0 ^ mix(number.wrapping_add(GOLDEN))))
    }

    /// One draw in `(0, 1)`, an odd multiple of `2^-54`.
    pub(crate) fn unit(self, number: u64) -> f64 {
        ((self.child(number).0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// The key of a row's draws.
    pub(crate) const fn row(self, row: usize) -> RowKey {
        let [a, b, c, d, e, f, g, h] = self.child(row as u64).0.to_le_bytes();
        RowKey([u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])])
    }
}

/// The golden ratio in 64 bits, the increment of `SplitMix64`.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64` (Steele, Lea, Flood, 2014).
const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Names the draws of a row: one a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKey([u32; 2]);

impl RowKey {
    /// The draws of columns `first`, `first + 1`, …, in `[0, 1)`, multiples of `2^-24`.
    ///
    /// The column is hashed in three rounds of shifts and multiplications (the constants are Wellons's, found by search for an even
    /// avalanche). Half of the key goes in before them, half between: rows whose first halves are close do not share their draws.
    #[inline(always)]
    pub(crate) fn draw<S: Simd>(self, simd: S, first: u32) -> S::Floats {
        let v = simd.xor(simd.count_from(first), self.0[0]);
        let v = simd.multiply(simd.xor_shift::<17>(v), 0xed5a_d4bb);
        let v = simd.xor(v, self.0[1]);
        let v = simd.multiply(simd.xor_shift::<11>(v), 0xac4c_1b51);
        let v = simd.multiply(simd.xor_shift::<15>(v), 0x3184_8bab);
        simd.to_unit(simd.xor_shift::<14>(v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::LANES;
    use crate::simd::portable::Portable;

    const ROWS: usize = 256;
    const COLUMNS: usize = 1024;

    fn draws() -> Vec<f32> {
        let key = Key::new(1).child(2);
        let vectors =
            |row| (0..COLUMNS as u32).step_by(LANES).map(move |first| key.row(row).draw(Portable, first));
        (0..ROWS).flat_map(|row| vectors(row).flatten()).collect()
    }

    /// Pearson's statistic of 2^18 draws in 256 cells has 255 degrees of freedom: mean 255, deviation 22.6. Outside of five
    /// deviations lies less than one generator in a million that is what it should be.
    fn check_even(cells: &[u32], what: &str) {
        let expected = f64::from(cells.iter().sum::<u32>()) / cells.len() as f64;
        let statistic: f64 = cells.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!((statistic - 255.0).abs() < 5.0 * 22.6, "{what}: {statistic}");
    }

    #[test]
    fn draws_are_even_and_pairs_of_neighbours_too() {
        let draws = draws();
        let [mut singles, mut in_row, mut in_column, mut low] = [[0; 256]; 4];
        let cell = |a: f32, b: f32| (a * 16.0) as usize * 16 + (b * 16.0) as usize;
        for (i, &draw) in draws.iter().enumerate() {
            singles[(draw * 256.0) as usize] += 1;
            low[(draw * 16_777_216.0) as usize % 256] += 1;
            in_row[cell(draw, draws[(i + 1) % draws.len()])] += 1;
            in_column[cell(draw, draws[(i + COLUMNS) % draws.len()])] += 1;
        }
        check_even(&singles, "upper bits");
        check_even(&low, "lower bits");
        check_even(&in_row, "neighbours in a row");
        check_even(&in_column, "neighbours in a column");
    }

    #[test]
    fn keys_differ_in_all_their_parts() {
        let key = Key::new(7);
        let keys =
            [key, Key::new(8), key.child(0), key.child(1), key.child(0).child(1), key.child(1).child(0)];
        let firsts: std::collections::HashSet<_> = keys.iter().map(|key| key.row(0).0).collect();
        assert_eq!(firsts.len(), keys.len());
    }
}
