use std::fmt::Debug;

use crate::{CollectiveError, DEPTH, Part};

/// Tiles that a transport keeps for each pair of ranks and each [`Part`]: as many as a rank may be ahead of another.
pub const WINDOW: u64 = 2 * DEPTH as u64;

/// How the messages of one rank get to the others, and theirs here.
///
/// Messages of one rank and part come in the order of their tiles. The rules in [the crate's documentation](crate#windows) hold:
/// when tile `i` is sent, every receiver is done with tile `i - WINDOW`.
pub trait Transport: Debug + Send {
    /// This rank.
    fn rank(&self) -> usize;

    /// All ranks of the group.
    fn ranks(&self) -> usize;

    /// Hands a message to the rank that adds it up. Does not wait for it.
    ///
    /// # Errors
    /// Where the other rank cannot be reached.
    fn push(&mut self, to: usize, tile: u64, message: &[u8]) -> Result<(), CollectiveError>;

    /// Hands a message to all other ranks. Does not wait for them.
    ///
    /// # Errors
    /// As [`Transport::push`].
    fn share(&mut self, tile: u64, message: &[u8]) -> Result<(), CollectiveError>;

    /// Waits for the message that `from` pushed here or shared as this tile. It replaces what `message` held.
    ///
    /// # Errors
    /// [`CollectiveError::Late`], [`CollectiveError::Left`], [`CollectiveError::GaveUp`].
    fn receive(
        &mut self,
        from: usize,
        part: Part,
        tile: u64,
        message: &mut Vec<u8>,
    ) -> Result<(), CollectiveError>;

    /// Tells all other ranks that this one takes part in nothing anymore from the call on that begins with `tile`, and why. It has
    /// sent its part of all tiles before that.
    fn give_up(&mut self, tile: u64, reason: &str);
}
