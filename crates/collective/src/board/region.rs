use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::mailbox::{LINE, Mailbox, WORD, read, write};
use crate::Part;

/// Bytes of a reason that the others are told.
const LONGEST_REASON: usize = 1024;

/// The memory that one rank writes and all others read.
pub(crate) trait Memory: Debug + Send + Sync {
    /// As many words as [`Shape::words`] at least, zero at first.
    fn words(&self) -> &[AtomicU64];

    /// Whether whoever wrote here has ended.
    fn is_abandoned(&self) -> bool;
}

/// How large the regions of a group are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) ranks: usize,
    /// Bytes of the longest message.
    pub(crate) longest: usize,
}

impl Shape {
    /// Words of a region.
    pub(crate) const fn words(self) -> usize {
        // A mailbox for each rank, of which the rank's own is for all.
        STATE + self.ranks * Mailbox::words(self.longest)
    }
}

// What a rank says of itself, by word.
/// For whoever sets the memory up.
pub(crate) const HEADER: std::ops::Range<usize> = 0..LINE;
const WAITS: usize = LINE;
const LEFT: usize = LINE + 1;
/// The tile from which on it gave up, plus one.
const GAVE_UP: usize = LINE + 2;
const REASON_LENGTH: usize = LINE + 3;
const REASON: usize = 2 * LINE;
const STATE: usize = REASON + LONGEST_REASON / WORD;

/// A rank's region: what it says of itself and its mailboxes.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) memory: Box<dyn Memory>,
    longest: usize,
}

impl Region {
    pub(super) fn new(memory: Box<dyn Memory>, shape: Shape) -> Self {
        Self { memory, longest: shape.longest }
    }

    /// What it sends to `to`, or, if that is the rank itself, to all.
    pub(super) fn mailbox(&self, to: usize) -> Mailbox<'_> {
        let words = Mailbox::words(self.longest);
        Mailbox(&self.memory.words()[STATE + to * words..][..words])
    }

    /// What it waits for: a part of a tile of a rank.
    pub(super) fn waits(&self) -> Option<(usize, Part, u64)> {
        unpack(self.word(WAITS).load(Ordering::Relaxed))
    }

    pub(super) fn set_waits(&self, what: Option<(usize, Part, u64)>) {
        self.word(WAITS).store(what.map_or(0, pack), Ordering::Release);
    }

    pub(super) fn has_left(&self) -> bool {
        let left = self.word(LEFT).load(Ordering::Relaxed) != 0;
        fence(Ordering::Acquire);
        left
    }

    pub(super) fn leave(&self) {
        self.word(LEFT).store(1, Ordering::Release);
    }

    /// From which tile on it gave up, and why.
    pub(super) fn gave_up(&self) -> Option<(u64, String)> {
        let tile = self.word(GAVE_UP).load(Ordering::Relaxed).checked_sub(1)?;
        fence(Ordering::Acquire);
        let (length, mut reason) = (self.word(REASON_LENGTH).load(Ordering::Relaxed), Vec::new());
        read(&self.memory.words()[REASON..STATE], length as usize, &mut reason);
        // It ends up on a terminal.
        Some((tile, String::from_utf8_lossy(&reason).replace(char::is_control, " ")))
    }

    pub(super) fn give_up(&self, tile: u64, reason: &str) {
        let reason = &reason[..reason.floor_char_boundary(LONGEST_REASON)];
        write(&self.memory.words()[REASON..STATE], reason.as_bytes());
        self.word(REASON_LENGTH).store(reason.len() as u64, Ordering::Relaxed);
        self.word(GAVE_UP).store(tile + 1, Ordering::Release);
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        &self.memory.words()[place]
    }
}

fn pack((from, part, tile): (usize, Part, u64)) -> u64 {
    (tile << 8 | (from as u64) << 2 | u64::from(part == Part::Push) << 1) | 1
}

fn unpack(waits: u64) -> Option<(usize, Part, u64)> {
    let part = if waits & 2 != 0 { Part::Push } else { Part::Share };
    (waits != 0).then_some(((waits >> 2 & 0x3f) as usize, part, waits >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_waits_for_can_be_told() {
        for what in [(0, Part::Push, 0), (63, Part::Share, 1 << 40), (5, Part::Push, 77)] {
            assert_eq!(unpack(pack(what)), Some(what));
        }
        assert_eq!(unpack(0), None);
    }
}
