//! Ranks that are threads of one process.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::board::{Board, End, MOST_RANKS, Memory, Shape};
use crate::codecs::kernels;
use crate::{CollectiveError, Group, Settings};

/// A group of `ranks` ranks, one for each thread.
///
/// # Errors
/// [`CollectiveError::Ranks`]; [`CollectiveError::Kernels`] if there are no kernels of the name in `THINWIRE_ISA`.
pub fn group(ranks: usize, settings: &Settings) -> Result<Vec<Group>, CollectiveError> {
    if !(2..=MOST_RANKS).contains(&ranks) {
        return Err(CollectiveError::Ranks { got: ranks, most: MOST_RANKS });
    }
    let execution = kernels()?;
    let board = Arc::new(board(Shape { ranks, longest: settings.longest_message() }));
    let end = |rank| End { rank, board: board.clone(), deadline: settings.deadline };
    Ok((0..ranks).map(|rank| Group::new(Box::new(end(rank)), settings.tile, execution)).collect())
}

/// A board that all threads share.
pub(crate) fn board(shape: Shape) -> Board {
    Board::new((0..shape.ranks).map(|_| Box::new(Heap::new(shape.words())) as Box<dyn Memory>), shape)
}

/// Memory of this process.
#[derive(Debug)]
struct Heap {
    words: Box<[AtomicU64]>,
    /// Words in front of the first whole cache line.
    skip: usize,
}

impl Heap {
    const LINE_BYTES: usize = 64;

    fn new(words: usize) -> Self {
        let spare = Self::LINE_BYTES / size_of::<AtomicU64>();
        let words: Box<[AtomicU64]> = (0..words + spare).map(|_| AtomicU64::new(0)).collect();
        let skip = words.as_ptr().align_offset(Self::LINE_BYTES).min(spare);
        Self { words, skip }
    }
}

impl Memory for Heap {
    fn words(&self) -> &[AtomicU64] {
        &self.words[self.skip..]
    }

    /// A thread that ends drops its end of the group, and says so.
    fn is_abandoned(&self) -> bool {
        false
    }
}
