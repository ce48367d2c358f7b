use std::ops::Range;

/// How a tensor is cut among the ranks, and a rank's segment into tiles.
///
/// Both cuts fall between groups of the codec, so that a group is in one message. Groups are shared as evenly as possible, the
/// first ranks have one more. Some segments may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    values: usize,
    ranks: usize,
    /// Values of a group of the codec.
    group: usize,
    /// Values of a tile, a multiple of `group`.
    tile: usize,
}

impl Segments {
    /// Cuts a tensor of `values` values for `ranks` ranks in groups of `group` values. `tile` values make a tile, or as many less
    /// as make it whole groups, but at least one.
    ///
    /// # Panics
    /// If `ranks` or `group` is 0.
    pub fn new(values: usize, ranks: usize, group: usize, tile: usize) -> Self {
        assert!(ranks > 0 && group > 0, "a tensor is cut for ranks, in groups");
        Self { values, ranks, group, tile: (tile / group).max(1) * group }
    }

    /// The segment that `rank` owns.
    pub fn segment(&self, rank: usize) -> Range<usize> {
        let groups = self.values.div_ceil(self.group);
        let (each, more) = (groups / self.ranks, groups % self.ranks);
        let start = |rank: usize| ((rank * each + rank.min(more)) * self.group).min(self.values);
        start(rank)..start(rank + 1)
    }

    /// Values of a tile, but for the last ones of a segment.
    pub fn tile_values(&self) -> usize {
        self.tile
    }

    /// Tiles of the longest segment, at least one. Every call has as many steps, so that a rank with an empty segment takes part
    /// in all of them.
    pub fn tiles(&self) -> usize {
        self.segment(0).len().div_ceil(self.tile).max(1)
    }

    /// Tile `index` of the segment of `rank`, empty behind its end.
    pub fn tile(&self, rank: usize, index: usize) -> Range<usize> {
        let segment = self.segment(rank);
        let start = |index: usize| (segment.start + index * self.tile).min(segment.end);
        start(index)..start(index + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_is_in_one_tile_and_no_group_in_two(
            values in 0_usize..5000,
            ranks in 1_usize..9,
            group in 1_usize..200,
            tile in 0_usize..700,
        ) {
            let segments = Segments::new(values, ranks, group, tile);
            let mut next = 0;
            for rank in 0..ranks {
                let segment = segments.segment(rank);
                prop_assert_eq!(segment.start, next);
                for index in 0..segments.tiles() {
                    let tile = segments.tile(rank, index);
                    prop_assert_eq!(tile.start, next);
                    prop_assert!(tile.len() <= segments.tile_values());
                    prop_assert!(tile.is_empty() || tile.start.is_multiple_of(group));
                    next = tile.end;
                }
                prop_assert_eq!(segment.end, next);
                let longest = segments.segment(0).len();
                prop_assert!(segment.len() + 2 * group > longest && segment.len() <= longest);
            }
            prop_assert_eq!(next, values);
        }
    }
}
