//! One end of a boundary.

use thinwire_codec::DType;

use super::SharedMemory;

/// The end of a boundary that activations leave from, or the one that they come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Remembers what it has sent.
    Sent,
    /// Remembers what it has received.
    Received,
}

impl End {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sent, Self::Received];

    /// `sent` or `received`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// What a stage remembers at its end of a boundary.
#[derive(Debug, Clone)]
pub struct BoundaryMemory {
    /// The boundary lies in front of this block.
    pub before: usize,
    /// Which end.
    pub end: End,
    /// The number format that is kept.
    pub keep: DType,
    /// Bytes that are kept of a token.
    pub token_bytes: u64,
    /// Tokens of the longest sample.
    pub tokens: u64,
    /// Samples that there are: 0 up to this.
    pub samples: u64,
    /// What is kept.
    pub memory: SharedMemory,
}
