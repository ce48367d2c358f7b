//! Ranks that are processes of one machine, whose messages lie in memory that all of them have mapped.
//!
//! Each rank makes a file in a folder that is memory, writes there and nowhere else, and maps those of the others to read them.
//! The files have names only until everyone has opened them, so that nothing is left over however a group ends. A rank holds a lock on
//! its file, which the system releases when its process ends: by that the others notice, and by that a file that an interrupted start
//! left behind is told from one in use, and replaced.

mod map;
mod meeting;
mod own;

use std::path::Path;
use std::sync::Arc;

use thinwire_link::RunId;

use self::map::Map;
use self::meeting::Meeting;
use crate::board::{Board, End, MOST_RANKS, Memory, Shape};
use crate::codecs::kernels;
use crate::{CollectiveError, Group, Settings};

/// Where Linux has files that are memory.
pub const FOLDER: &str = "/dev/shm";

/// The end of rank `rank` of a group of `ranks` processes, which all come to the same folder with the same `run` and settings.
///
/// The files are for this user alone. The folder should be [`FOLDER`]; elsewhere the messages may be written to a disk.
///
/// # Errors
/// [`CollectiveError::Absent`] names a rank that does not come by [`Settings::deadline`], [`CollectiveError::Setup`] one with other
/// settings, [`CollectiveError::Died`] one that ends meanwhile; [`CollectiveError::Taken`] if there is such a rank already;
/// [`CollectiveError::Memory`], [`CollectiveError::Ranks`], [`CollectiveError::Kernels`].
pub fn group(
    folder: &Path,
    run: RunId,
    rank: usize,
    ranks: usize,
    settings: &Settings,
) -> Result<Group, CollectiveError> {
    if !(2..=MOST_RANKS).contains(&ranks) || rank >= ranks {
        return Err(CollectiveError::Ranks { got: ranks.max(rank + 1), most: MOST_RANKS });
    }
    let execution = kernels()?;
    let shape = Shape { ranks, longest: settings.longest_message() };
    let maps = Meeting { folder, run, rank, shape, settings }.hold()?;
    let memories = maps.into_iter().map(|map: Map| Box::new(map) as Box<dyn Memory>);
    let board = Arc::new(Board::new(memories, shape));
    Ok(Group::new(Box::new(End { rank, board, deadline: settings.deadline }), settings.tile, execution))
}
