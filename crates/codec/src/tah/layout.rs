use super::{Allocation, PARAMETER, TahSettings, allocate};
use crate::Shape;
use crate::kernel::bits::packed_len;

/// Where things are in a TAH payload: one block a sample, every block with the same sections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) tokens: usize,
    pub(super) channels: usize,
    high_bits: u32,
    low_bits: u32,
    /// Quantization tiles of a token, the last one maybe partial.
    pub(super) tiles_per_token: usize,
    /// Quantization tiles of an allocation tile, the last one of a token maybe with fewer.
    pub(super) tiles_per_allocation: usize,
    /// Quantization tiles of a sample.
    pub(super) tiles: usize,
    /// Allocation tiles of a sample.
    pub(super) allocations: usize,
    /// Allocation tiles of a sample that get the high width.
    pub(super) high: usize,
    pivots_bytes: usize,
    map_bytes: usize,
    pub(super) sample_bytes: usize,
    pub(super) total_bytes: usize,
}

/// The sections of one sample's block, in their order.
#[derive(Clone, Copy)]
pub(super) struct Sections<T> {
    /// `f16` zero points, one a tile.
    pub(super) zeros: T,
    /// `f16` scales, one a tile, the outlier flag in the sign bit.
    pub(super) scales: T,
    /// Bit-packed pivots, `log2 G` bits a tile.
    pub(super) pivots: T,
    /// The width map, one bit an allocation tile.
    pub(super) map: T,
    /// The codes, `G * width / 8` bytes a tile, then zeros.
    pub(super) codes: T,
}

impl Layout {
    /// `None` if a count overflows.
    pub(super) fn new(settings: &TahSettings, shape: Shape) -> Option<Self> {
        let Shape { samples, tokens, channels } = shape;
        let tiles_per_token = channels.div_ceil(settings.tile);
        let tiles_per_allocation = match settings.allocation {
            Allocation::Channels(channels) => channels / settings.tile,
            Allocation::Token => tiles_per_token.max(1),
        };
        let tiles = tokens.checked_mul(tiles_per_token)?;
        let allocations = tokens.checked_mul(tiles_per_token.div_ceil(tiles_per_allocation))?;
        // Tiles are ranked by 32-bit index.
        u32::try_from(allocations).ok()?;
        let high = (settings.high_share * allocations as f64).round_ties_even() as usize;

        // The section must hold the widest assignment: whole allocation tiles high before partial ones.
        let whole = tokens * (tiles_per_token / tiles_per_allocation);
        let high_tiles = high.min(whole) * tiles_per_allocation
            + high.saturating_sub(whole) * (tiles_per_token % tiles_per_allocation);
        let bytes_at = |bits: u32| settings.tile / 8 * bits as usize;
        let codes_bytes = tiles
            .checked_mul(bytes_at(settings.low_bits))?
            .checked_add(high_tiles.checked_mul(bytes_at(settings.high_bits - settings.low_bits))?)?;

        tiles.checked_mul(settings.tile.ilog2() as usize)?;
        let pivots_bytes = packed_len(tiles, settings.tile.ilog2());
        let map_bytes = allocations.div_ceil(8);
        let sample_bytes = tiles
            .checked_mul(2 * PARAMETER)?
            .checked_add(pivots_bytes)?
            .checked_add(map_bytes)?
            .checked_add(codes_bytes)?;
        Some(Self {
            tokens,
            channels,
            high_bits: settings.high_bits,
            low_bits: settings.low_bits,
            tiles_per_token,
            tiles_per_allocation,
            tiles,
            allocations,
            high,
            pivots_bytes,
            map_bytes,
            sample_bytes,
            total_bytes: samples.checked_mul(sample_bytes)?,
        })
    }

    /// Bits of a code in every quantization tile of a sample, by the sample's width map.
    pub(super) fn widths(&self, map: &[u8], widths: &mut [u8]) {
        let bits = [self.low_bits as u8, self.high_bits as u8];
        if self.tiles_per_allocation == 1 {
            for (widths, byte) in widths.chunks_mut(8).zip(map) {
                for (i, width) in widths.iter_mut().enumerate() {
                    *width = bits[usize::from(byte >> i & 1)];
                }
            }
            return;
        }
        let mut allocation = 0;
        for token in widths.chunks_exact_mut(self.tiles_per_token) {
            for tiles in token.chunks_mut(self.tiles_per_allocation) {
                tiles.fill(bits[usize::from(allocate::is_high(map, allocation))]);
                allocation += 1;
            }
        }
    }

    /// Allocation tiles of a token.
    pub(super) fn allocations_per_token(&self) -> usize {
        self.tiles_per_token.div_ceil(self.tiles_per_allocation)
    }

    /// Values of a sample.
    pub(super) fn sample_elements(&self) -> usize {
        self.tokens * self.channels
    }

    /// Cuts a sample's block into its sections.
    pub(super) fn split<'a>(&self, block: &'a [u8]) -> Sections<&'a [u8]> {
        let (zeros, block) = block.split_at(self.tiles * PARAMETER);
        let (scales, block) = block.split_at(self.tiles * PARAMETER);
        let (pivots, block) = block.split_at(self.pivots_bytes);
        let (map, codes) = block.split_at(self.map_bytes);
        Sections { zeros, scales, pivots, map, codes }
    }

    /// [`Self::split`] for writing.
    pub(super) fn split_mut<'a>(&self, block: &'a mut [u8]) -> Sections<&'a mut [u8]> {
        let (zeros, block) = block.split_at_mut(self.tiles * PARAMETER);
        let (scales, block) = block.split_at_mut(self.tiles * PARAMETER);
        let (pivots, block) = block.split_at_mut(self.pivots_bytes);
        let (map, codes) = block.split_at_mut(self.map_bytes);
        Sections { zeros, scales, pivots, map, codes }
    }
}
