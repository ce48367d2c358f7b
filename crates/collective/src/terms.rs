//! What each rank says first of a call, which must be the same of all.

use std::fmt::{self, Write};

use thinwire_codec::CodecSpec;

use crate::{CollectiveError, Segments};

/// What ranks do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AllReduce,
    ReduceScatter,
    AllGather,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
        })
    }
}

/// What all ranks must agree on, and where this call is among the group's.
pub(crate) struct Terms<'a> {
    pub(crate) kind: Kind,
    pub(crate) codec: &'a CodecSpec,
    pub(crate) values: usize,
    pub(crate) segments: Segments,
    /// Calls before it.
    pub(crate) call: u64,
    /// Tiles before it.
    pub(crate) first_tile: u64,
}

impl Terms<'_> {
    /// As text, which the ranks compare.
    pub(crate) fn write(&self, text: &mut String) {
        let Self { kind, codec, values, segments, call, .. } = self;
        let tile = segments.tile_values();
        text.clear();
        write!(text, "call {call}: {kind} of {values} values by {codec} in tiles of {tile}")
            .expect("a string takes any text");
        text.truncate(LONGEST_TERMS); // a codec's numbers may have any number of digits, all of them ASCII
    }
}

/// The most bytes of terms that are sent and compared.
pub(crate) const LONGEST_TERMS: usize = 256;

/// Puts the terms in front of `message`, and says where they end.
pub(crate) fn begin(terms: &str, message: &mut Vec<u8>) -> usize {
    let length = (terms.len() as u16).to_le_bytes();
    let end = length.len() + terms.len();
    if message.len() < end {
        message.resize(end, 0);
    }
    message[..length.len()].copy_from_slice(&length);
    message[length.len()..end].copy_from_slice(terms.as_bytes());
    end
}

/// Where the codec's part begins in a call's first message, whose terms must be those of `rank`, this one.
pub(crate) fn check(rank: usize, ours: &str, from: usize, message: &[u8]) -> Result<usize, CollectiveError> {
    let theirs = message
        .split_first_chunk()
        .and_then(|(&length, rest)| rest.get(..u16::from_le_bytes(length).into()))
        .unwrap_or(message);
    if theirs == ours.as_bytes() {
        return Ok(size_of::<u16>() + theirs.len());
    }
    let theirs = String::from_utf8_lossy(&theirs[..theirs.len().min(LONGEST_TERMS)]).into_owned();
    Err(CollectiveError::Mismatch { rank: from, theirs, by: rank, ours: ours.to_owned() })
}
