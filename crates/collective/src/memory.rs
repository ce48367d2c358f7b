//! Ranks that are threads of one process.
//!
//! Every rank has a mailbox for each other rank's pushes and one for what it shares, each with a window of slots. A slot's stamp is
//! one more than the number of the tile in it, so it only grows and is never cleared; whoever needs a tile polls its stamp. There
//! is no lock on the way. Words of a slot are atomics of their own, which cost nothing beside encoding and need no unsafe code.

mod board;
mod mailbox;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::board::Board;
use crate::codecs::kernels;
use crate::{CollectiveError, Group, Part, Settings, Transport};

/// The most ranks of a group.
const MOST_RANKS: usize = 64;

/// A group of `ranks` ranks, one for each thread.
///
/// # Errors
/// [`CollectiveError::Ranks`]; [`CollectiveError::Kernels`] if there are no kernels of the name in `THINWIRE_ISA`.
pub fn group(ranks: usize, settings: &Settings) -> Result<Vec<Group>, CollectiveError> {
    if !(2..=MOST_RANKS).contains(&ranks) {
        return Err(CollectiveError::Ranks { got: ranks, most: MOST_RANKS });
    }
    let execution = kernels()?;
    let board = Arc::new(Board::new(ranks, settings.longest_message()));
    let end = |rank| End { rank, board: board.clone(), deadline: settings.deadline };
    Ok((0..ranks).map(|rank| Group::new(Box::new(end(rank)), settings.tile, execution)).collect())
}

#[derive(Debug)]
struct End {
    rank: usize,
    board: Arc<Board>,
    deadline: Duration,
}

impl Transport for End {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.board.ranks()
    }

    fn push(&mut self, to: usize, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        self.board.pushes(self.rank, to).put(tile, message);
        Ok(())
    }

    fn share(&mut self, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        self.board.shares(self.rank).put(tile, message);
        Ok(())
    }

    fn receive(
        &mut self,
        from: usize,
        part: Part,
        tile: u64,
        message: &mut Vec<u8>,
    ) -> Result<(), CollectiveError> {
        let by = self.rank;
        let mailbox = self.board.mailbox(from, part, by);
        if !mailbox.has(tile) {
            self.board.waits(by, Some((from, part, tile)));
            self.wait(from, part, tile)?;
            self.board.waits(by, None);
        }
        mailbox.take(tile, message);
        Ok(())
    }

    fn give_up(&mut self, tile: u64, reason: &str) {
        self.board.give_up(self.rank, tile, reason);
    }
}

impl End {
    fn wait(&self, from: usize, part: Part, tile: u64) -> Result<(), CollectiveError> {
        let (by, board, start) = (self.rank, &*self.board, Instant::now());
        let mailbox = board.mailbox(from, part, by);
        for turn in 0_u32.. {
            // In this order: what a rank sent, and why it gave up, was there before it left.
            let left = board.has_left(from);
            if mailbox.has(tile) {
                break;
            }
            if let Some((rank, reason)) = board.gave_up(by, tile) {
                return Err(CollectiveError::GaveUp { rank, reason: reason.to_owned() });
            }
            if left {
                return Err(CollectiveError::Left { rank: from, by, part, tile });
            }
            let waited = start.elapsed();
            if waited >= self.deadline {
                return Err(CollectiveError::Late { rank: board.blame(from, by), by, part, tile, waited });
            }
            pause(turn);
        }
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.board.leave(self.rank);
    }
}

/// Short at first, then more and more considerate of other threads.
fn pause(turn: u32) {
    match turn {
        0..64 => std::hint::spin_loop(),
        64..2048 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
