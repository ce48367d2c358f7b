//! What a rank says to another one in a frame: its step is the number of a tile, its micro-batch says what of it.

use thinwire_link::{FrameHeader, FrameKind, RunId};

use crate::Part;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The codec's message of a tile.
    Message(Part, u64),
    /// Why the sender takes part in nothing from this tile on.
    GaveUp(u64),
}

impl Content {
    pub(super) fn header(self, run: RunId, length: usize) -> FrameHeader {
        let (what, tile) = match self {
            Self::Message(Part::Push, tile) => (0, tile),
            Self::Message(Part::Share, tile) => (1, tile),
            Self::GaveUp(tile) => (2, tile),
        };
        FrameHeader::without_tensor(run, FrameKind::Collective, tile, what, length as u64)
    }

    /// Nothing for frames that are no part of a collective.
    pub(super) fn of(header: &FrameHeader) -> Option<Self> {
        match (header.kind, header.micro_batch) {
            (FrameKind::Collective, 0) => Some(Self::Message(Part::Push, header.step)),
            (FrameKind::Collective, 1) => Some(Self::Message(Part::Share, header.step)),
            (FrameKind::Collective, 2) => Some(Self::GaveUp(header.step)),
            _ => None,
        }
    }
}
