//! Which allocation tiles of a sample get the high width (TAH-Quant, section 3.2).

/// Bins of the histogram: enough that few tiles share one, and small beside the first-level cache.
const BINS: usize = 2048;

/// Finds the tiles of highest entropy in linear time: a histogram tells in which bin the last of them is, and only the
/// tiles of that bin are ranked.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Tiles in each bin.
    bins: Vec<u32>,
    /// The tiles of one bin.
    ranks: Vec<u64>,
}

impl Ranking {
    /// Sets bit `tile % 8` of byte `tile / 8` of `map` for the `high` tiles of highest entropy, of equal ones the first,
    /// and clears all others. The entropies are finite.
    pub(super) fn mark_high(&mut self, entropies: &[f32], high: usize, map: &mut [u8]) {
        map.fill(0);
        if high == 0 {
            return;
        }
        let max = entropies.iter().fold(0.0_f32, |max, &entropy| max.max(entropy));
        // Monotone in the entropy. Rounding errors below 0 fall into bin 0, as does everything where the maximum is 0.
        let per_bit = if max > 0.0 { (BINS - 1) as f32 / max } else { 0.0 };
        let bin = |entropy: f32| ((entropy * per_bit) as usize).min(BINS - 1);
        self.bins.clear();
        self.bins.resize(BINS, 0);
        for &entropy in entropies {
            self.bins[bin(entropy)] += 1;
        }
        // From the top, the first bin that does not fit.
        let (mut left, mut edge) = (high, BINS - 1);
        while edge > 0 && self.bins[edge] as usize <= left {
            left -= self.bins[edge] as usize;
            edge -= 1;
        }
        self.ranks.clear();
        for (tile, &entropy) in entropies.iter().enumerate() {
            let bin = bin(entropy);
            map[tile / 8] |= u8::from(bin > edge) << (tile % 8);
            if bin == edge {
                self.ranks.push(rank(entropy, tile));
            }
        }
        if left > 0 && left < self.ranks.len() {
            self.ranks.select_nth_unstable(left);
        }
        for rank in &self.ranks[..left] {
            let tile = *rank as u32 as usize;
            map[tile / 8] |= 1 << (tile % 8);
        }
    }
}

/// A tile's place in the ranking: higher entropy first, equal ones by lower index. Ranks of a sample are distinct,
/// so the set of the first `n` is unique and any selection finds the same.
fn rank(entropy: f32, tile: usize) -> u64 {
    let bits = (entropy + 0.0).to_bits(); // -0 + 0 is +0: both zeros rank alike
    let ascending = if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits };
    u64::from(!ascending) << 32 | tile as u64
}

/// Whether a width map gives `tile` the high width.
pub(super) fn is_high(map: &[u8], tile: usize) -> bool {
    map[tile / 8] >> (tile % 8) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(entropies: &[f32], high: usize) -> Vec<usize> {
        let mut map = vec![0xff; entropies.len().div_ceil(8)];
        Ranking::default().mark_high(entropies, high, &mut map);
        (0..map.len() * 8).filter(|&tile| is_high(&map, tile)).collect()
    }

    #[test]
    fn the_highest_entropies_win_and_ties_go_to_the_lower_index() {
        let entropies = [1.5, -0.0, 4.0, 1.5, 0.0, 1.5, -1e-7, 3.0, 0.0];
        let order = [2, 7, 0, 3, 5, 1, 4, 8, 6];
        for high in 0..=entropies.len() {
            let mut expected = order[..high].to_vec();
            expected.sort_unstable();
            assert_eq!(marked(&entropies, high), expected, "{high} high tiles");
        }
    }

    #[test]
    fn equal_entropies_are_taken_in_order() {
        for entropy in [-1e-7, 0.0, 2.0] {
            for high in 0..=20 {
                assert_eq!(marked(&[entropy; 20], high), (0..high).collect::<Vec<_>>());
            }
        }
    }

    /// Against a sort, with many tiles in a bin and ties across the edge.
    #[test]
    fn the_same_as_sorting() {
        let entropies: Vec<f32> =
            (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 18) as f32 * 4e-4).collect();
        let mut order: Vec<usize> = (0..entropies.len()).collect();
        order.sort_by(|&a, &b| entropies[b].total_cmp(&entropies[a])); // stable
        for high in (0..=entropies.len()).step_by(125) {
            let mut expected = order[..high].to_vec();
            expected.sort_unstable();
            assert!(marked(&entropies, high) == expected, "{high} high tiles");
        }
    }
}
