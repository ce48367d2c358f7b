//! How the bit streams of eight codes lie in memory and in 64-bit lanes, as tables for byte shuffles.

use super::PACK_ROOM;

/// A table for every width up to 8.
type ByWidth = [[u8; PACK_ROOM]; 9];

/// Byte `j` of 64-bit lane `q` is byte `8 q + j`; in the stream it is byte `width q + j`. Entry `i` of a table is the
/// byte in lanes that goes to byte `i` of the stream, or 255 behind the stream's end.
pub(super) const LANES_TO_STREAM: ByWidth = {
    let mut tables = [[255; PACK_ROOM]; 9];
    let mut width = 1;
    while width <= 8 {
        let mut i = 0;
        while i < 8 * width {
            tables[width][i] = (i / width * 8 + i % width) as u8;
            i += 1;
        }
        width += 1;
    }
    tables
};

/// The inverse of [`LANES_TO_STREAM`]: the byte of the stream that goes to each byte in lanes, or 255.
pub(super) const STREAM_TO_LANES: ByWidth = {
    let mut tables = [[255; PACK_ROOM]; 9];
    let mut width = 1;
    while width <= 8 {
        let mut i = 0;
        while i < 8 * width {
            tables[width][i / width * 8 + i % width] = i as u8;
            i += 1;
        }
        width += 1;
    }
    tables
};

/// What joins codes of one width to a stream of eight in each 64-bit lane, as 64-bit patterns to broadcast from memory.
#[derive(Clone, Copy)]
pub(super) struct Join {
    /// The largest code, in every byte.
    pub(super) largest: i64,
    /// Bytes that two codes are multiplied with and added: 1 and `2^width`.
    pub(super) pairs: i64,
    /// 16-bit factors that two pairs are multiplied with and added: 1 and `2^(2 width)`.
    pub(super) fours: i64,
    /// The place of the second four codes, `4 width`.
    pub(super) shift: i64,
}

/// For every width up to 8. There the codes are bytes already, and the factors without use.
pub(super) const JOIN: [Join; 9] = {
    let mut joins = [Join { largest: 0, pairs: 0, fours: 0, shift: 0 }; 9];
    let mut width = 1;
    while width <= 8 {
        joins[width] = Join {
            largest: (((1 << width) - 1) * 0x0101_0101_0101_0101_u64).cast_signed(),
            pairs: ((1 | 1 << (8 + width % 8)) * 0x0001_0001_0001_0001_u64).cast_signed(),
            fours: ((1 | 1 << (16 + 2 * (width % 8))) * 0x0000_0001_0000_0001_u64).cast_signed(),
            shift: (4 * width as u64).cast_signed(),
        };
        width += 1;
    }
    joins
};

/// The first bytes of `bytes` as an array, zero-filled: for streams that end near the end of their buffer.
pub(super) fn padded(bytes: &[u8]) -> [u8; PACK_ROOM] {
    let mut array = [0; PACK_ROOM];
    array[..bytes.len()].copy_from_slice(bytes);
    array
}
