use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use thinwire_codec::{DecodeError, EncodeError, SpecError};

/// What one rank waits for from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its copy of a tile that the waiting rank owns.
    Push,
    /// A tile that it owns, summed.
    Share,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Push => "addend",
            Self::Share => "sum",
        })
    }
}

/// Why a collective ended. The group is of no use afterwards: every later call returns the same error. What the output holds is
/// unspecified.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Nothing came until the deadline. If the rank that was waited for waited itself, this is the one at the end of the chain.
    #[error("rank {rank} is late: rank {by} has waited {waited:?} for its {part} of tile {tile}")]
    Late {
        /// The rank that holds the others up.
        rank: usize,
        /// The rank that waited for it.
        by: usize,
        /// For what.
        part: Part,
        /// Tiles are counted over the life of the group.
        tile: u64,
        /// How long.
        waited: Duration,
    },
    /// A rank's end of the group was dropped, be it that its thread is gone.
    #[error("rank {rank} has left the group, and rank {by} needs its {part} of tile {tile}")]
    Left {
        /// The rank that left.
        rank: usize,
        /// This rank.
        by: usize,
        /// What is missing.
        part: Part,
        /// Tiles are counted over the life of the group.
        tile: u64,
    },
    /// The process of a rank has ended in the middle of a call.
    #[error("the process of rank {rank} has ended, and rank {by} needs its part of the sum")]
    Died {
        /// The rank that ended.
        rank: usize,
        /// This rank.
        by: usize,
    },
    /// Another rank had an error and told so.
    #[error("rank {rank} gave up: {reason}")]
    GaveUp {
        /// The rank that had the error.
        rank: usize,
        /// Its error.
        reason: String,
    },
    /// Two ranks do not take part in the same call with the same settings.
    #[error("rank {rank} is in {theirs}; rank {by} is in {ours}")]
    Mismatch {
        /// The other rank.
        rank: usize,
        /// Its call.
        theirs: String,
        /// This rank.
        by: usize,
        /// This rank's call.
        ours: String,
    },
    /// A value that cannot be sent: of this rank's tensor, of its segment of the sum, which may overflow, or of a compensated
    /// tensor.
    #[error("value {index} of the {what} of rank {rank} is {value}: only finite values can be sent")]
    NonFinite {
        /// This rank.
        rank: usize,
        /// `tensor` or `sum`.
        what: &'static str,
        /// The place in the whole tensor.
        index: usize,
        /// What is there.
        value: f32,
    },
    /// A message could not be written.
    #[error("rank {rank} cannot encode a tile")]
    Encode {
        /// This rank.
        rank: usize,
        /// Why.
        source: Box<EncodeError>,
    },
    /// A message could not be read.
    #[error("the {part} of rank {rank} cannot be decoded")]
    Decode {
        /// The sender.
        rank: usize,
        /// What the message was to be.
        part: Part,
        /// Why.
        source: Box<DecodeError>,
    },
    /// A tensor of another length than the call needs.
    #[error("the {what} of rank {rank} has {got} values, this call needs {expected}")]
    Length {
        /// This rank.
        rank: usize,
        /// `output` or `segment`.
        what: &'static str,
        /// Values it must have.
        expected: usize,
        /// Values it has.
        got: usize,
    },
    /// A codec that no collective can use, or that cannot be built.
    #[error("codec {codec} of rank {rank}")]
    Codec {
        /// This rank.
        rank: usize,
        /// The codec.
        codec: String,
        /// Why.
        source: Box<SpecError>,
    },
    /// A codec whose messages depend on earlier ones.
    #[error("codec {codec} remembers samples, of which a sum has none")]
    Remembers {
        /// The codec.
        codec: String,
    },
    /// The link with another rank failed.
    #[error("the link with rank {rank} failed: {reason}")]
    Link {
        /// The other rank.
        rank: usize,
        /// The link's error.
        reason: String,
    },
    /// A message that is not the next one of its sender.
    #[error("rank {rank} sent its {part} of tile {got}, that of tile {expected} is next")]
    Order {
        /// The sender.
        rank: usize,
        /// Of what.
        part: Part,
        /// The tile that is next.
        expected: u64,
        /// The one that came.
        got: u64,
    },
    /// Links that do not make a group.
    #[error("rank {rank} has links for ranks {with:?}, itself included, not one for each from 0 on")]
    Links {
        /// This rank.
        rank: usize,
        /// The ranks at the other ends and this one, in order.
        with: Vec<usize>,
    },
    /// Memory that processes share could not be made, or not be used.
    #[error("the memory of rank {rank}, {}: {reason}", path.display())]
    Memory {
        /// Whose memory it is.
        rank: usize,
        /// Its file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A rank that did not come to the start of a group.
    #[error("rank {rank} has not come: rank {by} has waited {waited:?} for {}", path.display())]
    Absent {
        /// The rank that is missing.
        rank: usize,
        /// The rank that waited.
        by: usize,
        /// The file that was to appear.
        path: PathBuf,
        /// How long.
        waited: Duration,
    },
    /// Two processes that want to be the same rank.
    #[error("rank {rank} of this group is another process already, which has {}", path.display())]
    Taken {
        /// The rank.
        rank: usize,
        /// Its file.
        path: PathBuf,
    },
    /// Two ranks that were started with other settings.
    #[error("rank {rank} was started for {theirs}, rank {by} for {ours}")]
    Setup {
        /// The other rank.
        rank: usize,
        /// Its settings.
        theirs: String,
        /// This rank.
        by: usize,
        /// This rank's settings.
        ours: String,
    },
    /// There are no such kernels.
    #[error("the kernels of the codecs")]
    Kernels(#[source] Box<SpecError>),
    /// Not a number of ranks that a group can have.
    #[error("a group has from 2 to {most} ranks, not {got}")]
    Ranks {
        /// The number asked for.
        got: usize,
        /// The most.
        most: usize,
    },
}

/// An error's text with those of its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
