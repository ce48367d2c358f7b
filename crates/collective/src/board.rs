//! Mailboxes in memory that all ranks see, be they threads or processes.
//!
//! Every rank has a region that it alone writes: a mailbox for each other rank's pushes and one for what it shares, each with a window
//! of slots. A slot's stamp is one more than the number of the tile in it, so it only grows and is never cleared; whoever needs a
//! tile polls its stamp. There is no lock on the way. Words of a slot are atomics of their own, which cost nothing beside encoding.

mod end;
mod mailbox;
mod region;

pub(crate) use self::end::End;
use self::mailbox::Mailbox;
use self::region::Region;
pub(crate) use self::region::{HEADER, Memory, Shape};
use crate::Part;

/// The most ranks of a group.
pub(crate) const MOST_RANKS: usize = 64;

/// What the ranks of a group have in common, as one of them sees it.
#[derive(Debug)]
pub(crate) struct Board {
    regions: Vec<Region>,
}

impl Board {
    /// Of the memory of each rank.
    pub(crate) fn new(memories: impl IntoIterator<Item = Box<dyn Memory>>, shape: Shape) -> Self {
        Self { regions: memories.into_iter().map(|memory| Region::new(memory, shape)).collect() }
    }

    fn ranks(&self) -> usize {
        self.regions.len()
    }

    fn region(&self, rank: usize) -> &Region {
        &self.regions[rank]
    }

    /// Where `by` finds a part of `from`.
    fn mailbox(&self, from: usize, part: Part, by: usize) -> Mailbox<'_> {
        self.regions[from].mailbox(if part == Part::Push { by } else { from })
    }

    /// Whether a rank has ended without a word.
    fn has_died(&self, rank: usize) -> bool {
        let region = &self.regions[rank];
        region.memory.is_abandoned() && !region.has_left()
    }

    /// The first rank but `by` that gave up before `tile` was done, and why.
    fn gave_up(&self, by: usize, tile: u64) -> Option<(usize, String)> {
        let mut ranks = self.regions.iter().enumerate().filter(|&(rank, _)| rank != by);
        ranks.find_map(|(rank, region)| {
            let (from, reason) = region.gave_up()?;
            (from <= tile).then_some((rank, reason))
        })
    }

    /// The rank that holds `by` up, which waits for `from`: the last one of the chain of those that wait for one another. One that
    /// says so but has got what it waits for does not wait.
    fn blame(&self, from: usize, by: usize) -> usize {
        let mut last = from;
        for _ in 0..self.ranks() {
            let waits = self.regions[last].waits().filter(|&(next, ..)| next < self.ranks());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::board;

    const SHAPE: Shape = Shape { ranks: 4, longest: 8 };

    #[test]
    fn the_end_of_the_chain_is_blamed() {
        let board = board(SHAPE);
        board.region(3).set_waits(Some((1, Part::Share, 5)));
        assert_eq!(board.blame(1, 3), 1);
        board.region(1).set_waits(Some((2, Part::Push, 5)));
        assert_eq!(board.blame(1, 3), 2);
        // Rank 2 stopped while it waited for rank 1, which has long sent what it waited for.
        board.region(2).set_waits(Some((1, Part::Push, 4)));
        board.mailbox(1, Part::Push, 2).put(4, b"there");
        assert_eq!(board.blame(1, 3), 2);
        assert_eq!(board.blame(2, 1), 2);
    }

    #[test]
    fn of_a_circle_the_one_that_is_waited_for_is_blamed() {
        let board = board(Shape { ranks: 2, longest: 8 });
        board.region(0).set_waits(Some((1, Part::Push, 0)));
        board.region(1).set_waits(Some((0, Part::Share, 0)));
        assert_eq!(board.blame(1, 0), 1);
        assert_eq!(board.blame(0, 1), 0);
    }

    #[test]
    fn who_gave_up_is_heard_from_its_tile_on_with_a_reason_of_any_length() {
        let board = board(SHAPE);
        assert_eq!(board.gave_up(0, 9), None);
        board.region(2).give_up(5, &"\u{1b}ä".repeat(1000));
        assert_eq!(board.gave_up(0, 4), None);
        assert_eq!(board.gave_up(2, 5), None, "its own");
        let (rank, reason) = board.gave_up(0, 5).unwrap();
        assert_eq!((rank, reason), (2, " ä".repeat(341) + " "));
    }
}
