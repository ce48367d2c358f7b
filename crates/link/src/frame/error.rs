//! What can be wrong with a frame.

use crate::kind::FrameKind;

use super::{MAGIC, PROTOCOL_VERSION};

/// Bytes that are not a frame, or not an intact one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Fewer bytes than a part needs.
    #[error("truncated: the {what} needs {needed} bytes, {available} are there")]
    Truncated {
        /// The part.
        what: &'static str,
        /// Its length in bytes.
        needed: u64,
        /// What was left, in bytes.
        available: u64,
    },
    /// Another kind of data altogether.
    #[error("not a Thinwire frame: expected it to begin with {MAGIC:02x?}, found {found:02x?}")]
    Magic {
        /// The first bytes.
        found: [u8; 4],
    },
    /// A frame of another version of the protocol.
    #[error("protocol version {found}, ours is {PROTOCOL_VERSION}")]
    Version {
        /// The sender's version.
        found: u16,
    },
    /// The header was damaged.
    #[error("header checksum {stored:08x}, but the header's bytes have {computed:08x}")]
    HeaderChecksum {
        /// As it came.
        stored: u32,
        /// Of the bytes that came.
        computed: u32,
    },
    /// The payload was damaged.
    #[error("payload checksum {stored:08x}, but the payload's bytes have {computed:08x}")]
    PayloadChecksum {
        /// As it came.
        stored: u32,
        /// Of the bytes that came.
        computed: u32,
    },
    /// A field with a value that means nothing.
    #[error("{field} {found} is unknown; expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// A payload longer than the receiver takes; nothing was allocated for it.
    #[error("payload of {length} bytes; at most {limit} are taken here")]
    PayloadTooLong {
        /// The length the header names.
        length: u64,
        /// The receiver's limit.
        limit: u64,
    },
    /// A kind that has no payload came with one.
    #[error("a {kind} frame has no payload, but the header names {length} bytes")]
    UnexpectedPayload {
        /// The frame's kind.
        kind: FrameKind,
        /// The length the header names.
        length: u64,
    },
    /// The header to encode does not fit its payload.
    #[error("the header names a payload of {header} bytes, the payload has {payload}")]
    LengthMismatch {
        /// As the header says.
        header: u64,
        /// As it is.
        payload: u64,
    },
    /// Bytes after the end.
    #[error("{extra} bytes follow the end")]
    TrailingBytes {
        /// How many.
        extra: u64,
    },
}
