//! Which allocation tiles of a sample get the high width (TAH-Quant, section 3.2).

/// A tile's place in the ranking: higher entropy first, equal ones by lower index. Ranks of a sample are distinct,
/// so the set of the first `n` is unique and any selection finds the same.
pub(super) fn rank(entropy: f32, tile: usize) -> u64 {
    let bits = (entropy + 0.0).to_bits(); // -0 + 0 is +0: both zeros rank alike
    let ascending = if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits };
    u64::from(!ascending) << 32 | tile as u64
}

/// Sets bit `tile % 8` of byte `tile / 8` of `map` for the `high` tiles of lowest rank, clears all others. Linear time.
pub(super) fn mark_high(ranks: &mut [u64], high: usize, map: &mut [u8]) {
    if high > 0 && high < ranks.len() {
        ranks.select_nth_unstable(high);
    }
    map.fill(0);
    for rank in &ranks[..high] {
        let tile = *rank as u32 as usize;
        map[tile / 8] |= 1 << (tile % 8);
    }
}

/// Whether a width map gives `tile` the high width.
pub(super) fn is_high(map: &[u8], tile: usize) -> bool {
    map[tile / 8] >> (tile % 8) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(entropies: &[f32], high: usize) -> Vec<usize> {
        let mut ranks: Vec<u64> = entropies.iter().enumerate().map(|(tile, &h)| rank(h, tile)).collect();
        let mut map = vec![0xff; entropies.len().div_ceil(8)];
        mark_high(&mut ranks, high, &mut map);
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
        for high in 0..=20 {
            assert_eq!(marked(&[2.0; 20], high), (0..high).collect::<Vec<_>>());
        }
    }
}
