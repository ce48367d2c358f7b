use half::f16;
use thinwire_codec::{Allocation, HEADER_LEN, Shape, TahSettings};

/// A TAH message taken apart bit by bit, by the text of `docs/format.md`.
pub(crate) struct TahMessage {
    /// All tiles of the message, sample after sample.
    pub(crate) tiles: Vec<Tile>,
}

pub(crate) struct Tile {
    pub(crate) width: u32,
    pub(crate) outlier: bool,
    pub(crate) pivot: usize,
    /// In units of the message scale.
    pub(crate) zero: f64,
    /// In units of the tensor.
    pub(crate) step: f64,
    pub(crate) codes: Vec<u32>,
}

/// The tile that value `index` of the tensor belongs to.
pub(crate) fn tile_of(settings: &TahSettings, shape: Shape, index: usize) -> usize {
    let tiles_per_token = shape.channels.div_ceil(settings.tile);
    index / shape.channels * tiles_per_token + index % shape.channels / settings.tile
}

/// Quantization tiles of a token, of an allocation tile, and allocation tiles of a token.
pub(crate) fn tiling(settings: &TahSettings, channels: usize) -> (usize, usize, usize) {
    let tiles = channels.div_ceil(settings.tile);
    let per_allocation = match settings.allocation {
        Allocation::Channels(channels) => channels / settings.tile,
        Allocation::Token => tiles,
    };
    (tiles, per_allocation, tiles.div_ceil(per_allocation))
}

impl TahMessage {
    pub(crate) fn parse(settings: &TahSettings, shape: Shape, message: &[u8]) -> Self {
        let exponent = i16::from_le_bytes([message[2], message[3]]);
        let unit = 2_f64.powi(i32::from(exponent));
        let payload = &message[HEADER_LEN..];
        let block = payload.len() / shape.samples;
        let tiles =
            payload.chunks_exact(block).flat_map(|block| sample(settings, shape, block, unit)).collect();
        Self { tiles }
    }
}

fn sample(settings: &TahSettings, shape: Shape, block: &[u8], unit: f64) -> Vec<Tile> {
    let (tiles_per_token, per_allocation, allocations) = tiling(settings, shape.channels);
    let tiles = shape.tokens * tiles_per_token;
    let pivot_bits = settings.tile.ilog2() as usize;
    let zeros = 0;
    let scales = zeros + 2 * tiles;
    let pivots = scales + 2 * tiles;
    let map = pivots + (tiles * pivot_bits).div_ceil(8);
    let codes = map + (shape.tokens * allocations).div_ceil(8);
    let half = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let bits = |section: usize, first: usize, width: usize| {
        (0..width)
            .map(|i| u32::from(block[section + (first + i) / 8] >> ((first + i) % 8) & 1) << i)
            .sum::<u32>()
    };
    let mut next_code = 0;
    (0..tiles)
        .map(|i| {
            let token = i / tiles_per_token;
            let allocation = token * allocations + i % tiles_per_token / per_allocation;
            let width =
                if bits(map, allocation, 1) == 1 { settings.high_bits } else { settings.low_bits } as usize;
            let scale = half(scales + 2 * i);
            let codes = (0..settings.tile).map(|j| bits(codes, next_code + j * width, width)).collect();
            next_code += settings.tile * width;
            Tile {
                width: width as u32,
                outlier: scale >> 15 == 1,
                pivot: bits(pivots, i * pivot_bits, pivot_bits) as usize,
                zero: f16::from_bits(half(zeros + 2 * i)).into(),
                step: f64::from(f16::from_bits(scale & 0x7fff)) * unit,
                codes,
            }
        })
        .collect()
}
