//! Which allocation tiles of a sample get the high width (TAH-Quant, section 3.2).

/// Bins of the histogram: enough that few tiles share one, and small beside the first-level cache.
const BINS: usize = 4096;

/// Adding this rounds a float in `0..2^23` to an integer and leaves it in the lowest bits.
const ROUNDER: f32 = 8_388_608.0; // 2^23

/// Finds the tiles of highest entropy in linear time, from estimates: a histogram tells in which bin the last of them is,
/// and only the tiles so near that they may be on either side of it are ranked, by their entropies.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Tiles in each bin.
    counts: Vec<u32>,
    /// The bin of each tile.
    bins: Vec<u16>,
    /// The tiles to rank.
    ranks: Vec<u64>,
}

/// What is known of the entropies of a sample's allocation tiles.
#[derive(Clone, Copy)]
pub(super) struct Estimates<'a> {
    /// Finite, one a tile.
    pub(super) entropies: &'a [f32],
    /// The most by which they are wrong.
    pub(super) margin: f32,
    /// The largest entropy a tile can have, but for rounding.
    pub(super) limit: f32,
}

impl Ranking {
    /// Sets bit `tile % 8` of byte `tile / 8` of `map` for the `high` tiles of highest entropy, of equal ones the first,
    /// and clears all others. `exact` is the entropy of a tile.
    pub(super) fn mark_high(
        &mut self,
        estimates: Estimates<'_>,
        high: usize,
        map: &mut [u8],
        mut exact: impl FnMut(usize) -> f32,
    ) {
        let per_bit = (BINS - 1) as f32 / estimates.limit;
        self.fill_bins(estimates.entropies, per_bit);
        // From the top, the first bin that does not fit.
        let (mut left, mut edge) = (high, BINS - 1);
        while edge > 0 && self.counts[edge] as usize <= left {
            left -= self.counts[edge] as usize;
            edge -= 1;
        }
        // If every estimate is off by at most the margin, so is the `high`-th largest. A tile further than twice as far
        // from it, which is in the bin `edge`, is on its side. One bin more than that takes up the rounding of bins.
        let near = (2.0 * estimates.margin * per_bit) as usize + 1;
        let (low_edge, high_edge) = (edge.saturating_sub(near), (edge + near).min(BINS - 1));
        left += self.counts[edge + 1..=high_edge].iter().map(|&count| count as usize).sum::<usize>();
        self.ranks.clear();
        for (i, (byte, bins)) in map.iter_mut().zip(self.bins.chunks(8)).enumerate() {
            let (mut marks, mut any_near) = (0, false);
            for (j, &bin) in bins.iter().enumerate() {
                marks |= u8::from(usize::from(bin) > high_edge) << j;
                any_near |= (low_edge..=high_edge).contains(&bin.into());
            }
            *byte = marks;
            if any_near {
                let places = bins.iter().enumerate();
                for (j, _) in places.filter(|(_, bin)| (low_edge..=high_edge).contains(&usize::from(**bin))) {
                    self.ranks.push(rank(exact(8 * i + j), 8 * i + j));
                }
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

    /// The bins are monotone in the entropy. Rounding errors below 0 fall into the lowest.
    fn fill_bins(&mut self, entropies: &[f32], per_bit: f32) {
        self.counts.clear();
        self.counts.resize(BINS, 0);
        self.bins.resize(entropies.len(), 0);
        for (bin, entropy) in self.bins.iter_mut().zip(entropies) {
            *bin = ((entropy * per_bit).clamp(0.0, (BINS - 1) as f32) + ROUNDER).to_bits() as u16;
        }
        for bin in &self.bins {
            self.counts[usize::from(*bin) % BINS] += 1;
        }
    }
}

/// Gives all of `tiles` tiles the high width, or none.
pub(super) fn mark_all(tiles: usize, high: bool, map: &mut [u8]) {
    map.fill(if high { 0xff } else { 0 });
    if let Some(last) = map.last_mut().filter(|_| !tiles.is_multiple_of(8)) {
        *last &= (1 << (tiles % 8)) - 1;
    }
}

/// Gives `high` of `tiles` tiles the high width, in distances as equal as can be; the last one is among them.
pub(super) fn mark_evenly(tiles: usize, high: usize, map: &mut [u8]) {
    map.fill(0);
    let (tiles, high) = (tiles as u64, high as u64); // their product is below 2^64: a map of that many tiles is in memory
    for tile in (1..=tiles).filter(|tile| tile * high / tiles > (tile - 1) * high / tiles) {
        let tile = (tile - 1) as usize;
        map[tile / 8] |= 1 << (tile % 8);
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
        let estimates = Estimates { entropies, margin: 0.0, limit: 6.0 };
        Ranking::default().mark_high(estimates, high, &mut map, |tile| entropies[tile]);
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
            for margin in [1e-4, 0.01, 3.0] {
                let estimates: Vec<f32> = (0..entropies.len())
                    .map(|i| entropies[i] + margin * ((i * 37 % 101) as f32 / 50.0 - 1.0))
                    .collect();
                let estimates = Estimates { entropies: &estimates, margin, limit: 6.6 };
                let mut map = vec![0xff; entropies.len().div_ceil(8)];
                Ranking::default().mark_high(estimates, high, &mut map, |tile| entropies[tile]);
                let got: Vec<usize> = (0..map.len() * 8).filter(|&tile| is_high(&map, tile)).collect();
                assert!(got == expected, "{high} high tiles, estimates off by {margin}");
            }
        }
    }

    #[test]
    fn even_widths_are_evenly_spread() {
        for tiles in 1..60 {
            for high in 1..=tiles {
                let mut map = vec![0xa5; usize::div_ceil(tiles, 8)];
                mark_evenly(tiles, high, &mut map);
                let marked: Vec<_> = (0..map.len() * 8).filter(|&tile| is_high(&map, tile)).collect();
                assert!(
                    marked.len() == high && marked[high - 1] == tiles - 1,
                    "{high} of {tiles}: {marked:?}"
                );
                let distances = marked.windows(2).map(|pair| pair[1] - pair[0]);
                let (least, most) = (tiles / high, tiles.div_ceil(high));
                assert!(
                    distances.clone().all(|d| (least..=most).contains(&d)),
                    "{high} of {tiles}: {marked:?}"
                );
            }
        }
    }

    #[test]
    fn all_or_none_leave_no_bit_behind_the_last_tile() {
        for tiles in 0..20 {
            let mut map = vec![0xa5; usize::div_ceil(tiles, 8)];
            mark_all(tiles, true, &mut map);
            assert_eq!(map.iter().map(|byte| byte.count_ones() as usize).sum::<usize>(), tiles);
            mark_all(tiles, false, &mut map);
            assert!(map.iter().all(|&byte| byte == 0));
        }
    }
}
