use std::time::Duration;

use thinwire_codec::DType;

use crate::terms::LONGEST_TERMS;

/// The longest group of a codec, which a tile has at least.
const LONGEST_GROUP: usize = 1024;

/// The most bits of a tile in a message. Shorter ones cost more wake-ups a byte; windows of longer ones leave the caches.
pub(crate) const MESSAGE_BITS: usize = 8 * 32 * 1024;

/// More bytes than a codec's message of a tile has beside those of f32 values.
const CODEC_HEADER: usize = 64;

/// What a group is made with, whatever carries its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The most values of a tile, which has no more than make a message of 32 KiB either: 65,536 of 4 bits, 8,192 of f32. Default
    /// 65,536, which stay in the second-level cache.
    pub tile: usize,
    /// The longest time to wait for a part of another rank. It has to exceed what a rank computes between two calls. Default 60 s.
    pub deadline: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tile: 65_536, deadline: Duration::from_mins(1) }
    }
}

impl Settings {
    /// Bytes that no message has more of, whatever the codec: f32 values are the longest.
    pub(crate) fn longest_message(&self) -> usize {
        let values = self.tile.max(LONGEST_GROUP) * DType::F32.size();
        values.min(MESSAGE_BITS / 8) + size_of::<u16>() + LONGEST_TERMS + CODEC_HEADER
    }
}
