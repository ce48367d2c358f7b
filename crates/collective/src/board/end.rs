use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Board;
use crate::{CollectiveError, Part, Transport};

/// One rank's end of a [`Board`].
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) rank: usize,
    pub(crate) board: Arc<Board>,
    pub(crate) deadline: Duration,
}

/// Turns of a wait between two looks at whether a rank still lives, which asks the system. Some 50 ms once turns are pauses.
const TURNS_A_LOOK: u32 = 512;

impl Transport for End {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.board.ranks()
    }

    fn push(&mut self, to: usize, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        self.board.region(self.rank).mailbox(to).put(tile, message);
        Ok(())
    }

    fn share(&mut self, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        self.board.region(self.rank).mailbox(self.rank).put(tile, message);
        Ok(())
    }

    fn receive(
        &mut self,
        from: usize,
        part: Part,
        tile: u64,
        message: &mut Vec<u8>,
    ) -> Result<(), CollectiveError> {
        let mailbox = self.board.mailbox(from, part, self.rank);
        if !mailbox.has(tile) {
            let own = self.board.region(self.rank);
            own.set_waits(Some((from, part, tile)));
            self.wait(from, part, tile)?;
            own.set_waits(None);
        }
        mailbox.take(tile, message);
        Ok(())
    }

    fn give_up(&mut self, tile: u64, reason: &str) {
        self.board.region(self.rank).give_up(tile, reason);
    }
}

impl End {
    fn wait(&self, from: usize, part: Part, tile: u64) -> Result<(), CollectiveError> {
        let (by, board, start) = (self.rank, &*self.board, Instant::now());
        let mailbox = board.mailbox(from, part, by);
        for turn in 1_u32.. {
            // In this order: what a rank sent, and why it gave up, was there before it left or ended.
            let left = board.region(from).has_left();
            let dead = turn.is_multiple_of(TURNS_A_LOOK).then(|| board.blame(from, by));
            let dead = dead.filter(|&rank| board.has_died(rank));
            if mailbox.has(tile) {
                break;
            }
            if let Some((rank, reason)) = board.gave_up(by, tile) {
                return Err(CollectiveError::GaveUp { rank, reason });
            }
            if left {
                return Err(CollectiveError::Left { rank: from, by, part, tile });
            }
            if let Some(rank) = dead {
                return Err(CollectiveError::Died { rank, by });
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
        self.board.region(self.rank).leave();
    }
}

/// Short at first, then more and more considerate of other threads.
fn pause(turn: u32) {
    match turn {
        0..64 => std::hint::spin_loop(),
        64..2048 => thread::yield_now(),
        _ => thread::sleep(Duration::from_micros(50)),
    }
}
