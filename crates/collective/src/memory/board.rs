use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::mailbox::Mailbox;
use crate::Part;

/// What the ranks of a group have in common.
#[derive(Debug)]
pub(super) struct Board {
    states: Vec<State>,
    /// Of each rank to each rank.
    pushes: Vec<Mailbox>,
    /// Of each rank to all.
    shares: Vec<Mailbox>,
}

/// What the others may know of a rank.
#[derive(Debug, Default)]
struct State {
    /// What it waits for, or 0: [`pack`].
    waits: AtomicU64,
    left: AtomicBool,
    /// From which tile on, and why.
    gave_up: OnceLock<(u64, String)>,
}

impl Board {
    /// For `ranks` ranks and messages of up to `longest` bytes.
    pub(super) fn new(ranks: usize, longest: usize) -> Self {
        // A rank pushes nothing to itself.
        let push = |pair| Mailbox::new(if pair / ranks == pair % ranks { 0 } else { longest });
        Self {
            states: (0..ranks).map(|_| State::default()).collect(),
            pushes: (0..ranks * ranks).map(push).collect(),
            shares: (0..ranks).map(|_| Mailbox::new(longest)).collect(),
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.states.len()
    }

    pub(super) fn pushes(&self, from: usize, to: usize) -> &Mailbox {
        &self.pushes[from * self.ranks() + to]
    }

    pub(super) fn shares(&self, from: usize) -> &Mailbox {
        &self.shares[from]
    }

    /// Where `by` finds a part of `from`.
    pub(super) fn mailbox(&self, from: usize, part: Part, by: usize) -> &Mailbox {
        match part {
            Part::Push => self.pushes(from, by),
            Part::Share => self.shares(from),
        }
    }

    /// Says what a rank waits for.
    pub(super) fn waits(&self, rank: usize, what: Option<(usize, Part, u64)>) {
        self.states[rank].waits.store(what.map_or(0, pack), Ordering::Release);
    }

    pub(super) fn give_up(&self, rank: usize, tile: u64, reason: &str) {
        self.states[rank].gave_up.get_or_init(|| (tile, reason.to_owned()));
    }

    /// The first rank but `by` that gave up before `tile` was done, and why.
    pub(super) fn gave_up(&self, by: usize, tile: u64) -> Option<(usize, &str)> {
        let mut ranks = self.states.iter().enumerate().filter(|&(rank, _)| rank != by);
        ranks.find_map(|(rank, state)| match state.gave_up.get() {
            Some((from, reason)) if *from <= tile => Some((rank, reason.as_str())),
            _ => None,
        })
    }

    pub(super) fn leave(&self, rank: usize) {
        self.states[rank].left.store(true, Ordering::Release);
    }

    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.states[rank].left.load(Ordering::Acquire)
    }

    /// The rank that holds `by` up, which waits for `from`: the last one of the chain of those that wait for one another. One that
    /// says so but has got what it waits for does not wait.
    pub(super) fn blame(&self, from: usize, by: usize) -> usize {
        let mut last = from;
        for _ in 0..self.ranks() {
            let waits = unpack(self.states[last].waits.load(Ordering::Acquire));
            let Some((next, part, tile)) = waits else { return last };
            if self.mailbox(next, part, last).has(tile) {
                return last;
            }
            last = next;
        }
        // They wait for one another in a circle: not in the same call.
        if last == by { from } else { last }
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

    #[test]
    fn the_end_of_the_chain_is_blamed() {
        let board = Board::new(4, 8);
        board.waits(3, Some((1, Part::Share, 5)));
        assert_eq!(board.blame(1, 3), 1);
        board.waits(1, Some((2, Part::Push, 5)));
        assert_eq!(board.blame(1, 3), 2);
        // Rank 2 stopped while it waited for rank 1, which has long sent what it waited for.
        board.waits(2, Some((1, Part::Push, 4)));
        board.pushes(1, 2).put(4, b"there");
        assert_eq!(board.blame(1, 3), 2);
        assert_eq!(board.blame(2, 1), 2);
    }

    #[test]
    fn of_a_circle_the_one_that_is_waited_for_is_blamed() {
        let board = Board::new(2, 8);
        board.waits(0, Some((1, Part::Push, 0)));
        board.waits(1, Some((0, Part::Share, 0)));
        assert_eq!(board.blame(1, 0), 1);
        assert_eq!(board.blame(0, 1), 0);
    }
}
