use std::sync::atomic::{AtomicU64, Ordering};

use crate::WINDOW;

const WORD: usize = size_of::<u64>();

/// Messages of one rank to another, or to all: the last [`WINDOW`] of them.
#[derive(Debug)]
pub(super) struct Mailbox {
    stamps: Stamps,
    /// A message's length in bytes, then its bytes in words.
    slots: Vec<Box<[AtomicU64]>>,
}

/// The number of the tile in each slot plus one. A cache line of their own: they are polled.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stamps([AtomicU64; WINDOW as usize]);

impl Mailbox {
    /// For messages of up to `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        let slot = || (0..=longest.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
        Self { stamps: Stamps::default(), slots: (0..WINDOW).map(|_| slot()).collect() }
    }

    /// Whether the tile is there, or has been.
    pub(super) fn has(&self, tile: u64) -> bool {
        self.stamps.0[slot_of(tile)].load(Ordering::Acquire) > tile
    }

    /// The message of a tile. Whoever reads from here is done with the tile that was in its slot.
    pub(super) fn put(&self, tile: u64, message: &[u8]) {
        let (length, words) = self.slots[slot_of(tile)].split_first().expect("a slot has a length");
        assert!(message.len() <= words.len() * WORD, "a message of {} bytes in a slot", message.len());
        length.store(message.len() as u64, Ordering::Relaxed);
        let (whole, rest) = message.as_chunks::<WORD>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut bytes = [0; WORD];
            bytes[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        self.stamps.0[slot_of(tile)].store(tile + 1, Ordering::Release);
    }

    /// Replaces what `message` held by that of a tile that is there.
    pub(super) fn take(&self, tile: u64, message: &mut Vec<u8>) {
        let (length, words) = self.slots[slot_of(tile)].split_first().expect("a slot has a length");
        let length = length.load(Ordering::Relaxed) as usize;
        message.resize(length.next_multiple_of(WORD), 0);
        for (bytes, word) in message.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        message.truncate(length);
        let stamp = self.stamps.0[slot_of(tile)].load(Ordering::Acquire);
        assert_eq!(stamp, tile + 1, "a tile is not overwritten before it was read");
    }
}

fn slot_of(tile: u64) -> usize {
    (tile % WINDOW) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_any_length_come_out_as_they_went_in() {
        let mailbox = Mailbox::new(40);
        let mut taken = vec![7; 100];
        for tile in 0..41 {
            let message: Vec<u8> = (0..tile as u8).map(|i| i.wrapping_mul(37) ^ 0x80).collect();
            assert!(!mailbox.has(tile));
            mailbox.put(tile, &message);
            assert!(mailbox.has(tile));
            mailbox.take(tile, &mut taken);
            assert_eq!(taken, message);
        }
        assert!(mailbox.has(3), "it has been there");
    }

    #[test]
    #[should_panic(expected = "not overwritten before it was read")]
    fn a_tile_that_was_overwritten_is_noticed() {
        let mailbox = Mailbox::new(8);
        mailbox.put(1, b"old");
        mailbox.put(1 + WINDOW, b"new");
        mailbox.take(1, &mut Vec::new());
    }
}
