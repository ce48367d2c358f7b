//! How the bit streams of eight codes lie in memory and in 64-bit lanes, as tables for byte shuffles.

use super::PACK_ROOM;
use crate::kernel::LANES;

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
pub(super) fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array[..bytes.len()].copy_from_slice(bytes);
    array
}

/// How codes of one width beyond 8 bits lie in their stream and in lanes.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    /// Eight codes in the front of each 16 bytes are to be one behind the other: the byte that goes to each byte of the
    /// stream, or 255 behind its end.
    pub(super) to_stream: [u8; PACK_ROOM],
    /// Bytes `4 i..4 i + 4`: those of the stream that code `i` of sixteen is in, then 255.
    pub(super) to_lanes: [u8; PACK_ROOM],
    /// The bit of these that the code begins at.
    pub(super) shifts: [u32; LANES],
}

/// For the widths from 9 to 16, the first at 0.
const WIDE: [Wide; 8] = {
    let mut all = [Wide { to_stream: [255; PACK_ROOM], to_lanes: [255; PACK_ROOM], shifts: [0; LANES] }; 8];
    let mut width = 9;
    while width <= 16 {
        let wide = &mut all[width - 9];
        let mut i = 0;
        while i < 4 * width {
            wide.to_stream[i] = (i / width * 16 + i % width) as u8;
            i += 1;
        }
        let mut code = 0;
        while code < LANES {
            let (first, last) = (code * width / 8, (code * width + width - 1) / 8);
            let mut byte = first;
            while byte <= last {
                wide.to_lanes[4 * code + byte - first] = byte as u8;
                byte += 1;
            }
            wide.shifts[code] = (code * width % 8) as u32;
            code += 1;
        }
        width += 1;
    }
    all
};

/// The entry of [`WIDE`] for a width.
pub(super) fn wide(width: u32) -> &'static Wide {
    &WIDE[width as usize - 9]
}
