use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::WINDOW;

pub(super) const WORD: usize = size_of::<u64>();

/// Words of a cache line, which nothing else shares with what others poll.
pub(super) const LINE: usize = 8;

/// Messages of one rank to another, or to all: the last [`WINDOW`] of them.
///
/// First come the stamps, the number of the tile in each slot plus one; then the slots: a message's length in bytes, then its bytes in
/// words. Those who read may have the memory for reading alone, where a load must be relaxed; a fence follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mailbox<'a>(pub(super) &'a [AtomicU64]);

impl Mailbox<'_> {
    /// Words of one for messages of up to `longest` bytes: whole lines.
    pub(super) const fn words(longest: usize) -> usize {
        WINDOW as usize * (1 + Self::slot(longest))
    }

    const fn slot(longest: usize) -> usize {
        (1 + longest.div_ceil(WORD)).next_multiple_of(LINE)
    }

    /// Whether the tile is there, or has been.
    pub(super) fn has(self, tile: u64) -> bool {
        self.0[place(tile)].load(Ordering::Relaxed) > tile
    }

    /// The message of a tile. Whoever reads from here is done with the tile that was in its slot.
    pub(super) fn put(self, tile: u64, message: &[u8]) {
        let (length, words) = self.slot_of(tile);
        length.store(message.len() as u64, Ordering::Relaxed);
        write(words, message);
        self.0[place(tile)].store(tile + 1, Ordering::Release);
    }

    /// Replaces what `message` held by that of a tile that is there.
    pub(super) fn take(self, tile: u64, message: &mut Vec<u8>) {
        fence(Ordering::Acquire);
        let (length, words) = self.slot_of(tile);
        read(words, length.load(Ordering::Relaxed) as usize, message);
        fence(Ordering::Acquire);
        let stamp = self.0[place(tile)].load(Ordering::Relaxed);
        assert_eq!(stamp, tile + 1, "a tile is not overwritten before it was read");
    }

    fn slot_of(&self, tile: u64) -> (&AtomicU64, &[AtomicU64]) {
        let slots = &self.0[WINDOW as usize..];
        let words = slots.len() / WINDOW as usize;
        slots[place(tile) * words..][..words].split_first().expect("a slot has a length")
    }
}

fn place(tile: u64) -> usize {
    (tile % WINDOW) as usize
}

/// Bytes to words.
///
/// # Panics
/// If there are too few words.
pub(super) fn write(words: &[AtomicU64], bytes: &[u8]) {
    assert!(bytes.len() <= words.len() * WORD, "{} bytes in {} words", bytes.len(), words.len());
    let (whole, rest) = bytes.as_chunks::<WORD>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut bytes = [0; WORD];
        bytes[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
}

/// The first bytes of these words, as many as there are at most. They replace what `bytes` held.
pub(super) fn read(words: &[AtomicU64], length: usize, bytes: &mut Vec<u8>) {
    let length = length.min(words.len() * WORD);
    bytes.resize(length.next_multiple_of(WORD), 0);
    for (bytes, word) in bytes.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
    bytes.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(longest: usize) -> Vec<AtomicU64> {
        (0..Mailbox::words(longest)).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn messages_of_any_length_come_out_as_they_went_in() {
        let words = words(40);
        let mailbox = Mailbox(&words);
        let mut taken = vec![7; 100];
        for tile in 0..41 {
            let message: Vec<u8> = (0..tile as u8).map(|i| i.wrapping_mul(37) ^ 0x80).collect();
            assert!(!mailbox.has(tile));
            mailbox.put(tile, &message);
            assert!(mailbox.has(tile));
            mailbox.take(tile, &mut taken);
            assert_eq!(taken, message);
        }
        assert!(mailbox.has(40 - WINDOW), "it has been there");
    }

    #[test]
    #[should_panic(expected = "not overwritten before it was read")]
    fn a_tile_that_was_overwritten_is_noticed() {
        let words = words(8);
        let mailbox = Mailbox(&words);
        mailbox.put(1, b"old");
        mailbox.put(1 + WINDOW, b"new");
        mailbox.take(1, &mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "65 bytes in 7 words")]
    fn a_message_that_is_too_long_is_refused() {
        Mailbox(&words(56)).put(0, &[0; 65]);
    }
}
