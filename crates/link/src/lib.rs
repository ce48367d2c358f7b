//! Links between the stages of a pipeline: frames over TCP with TLS 1.3, or in memory.
//!
//! A [`Link`] is two halves, a [`FrameSender`] and a [`FrameReceiver`], for two threads. [`tcp::connect`] and
//! [`tcp::Listener`] make one between machines: mutual TLS with pinned Ed25519 keys, then an exchange of
//! [hellos](Hello) that compares the [`Terms`] of both ends and refuses with both values named.
//! [`memory::pair`] makes one inside a process. Every wait has a deadline, and every error names the peer, the
//! frame and the time. Frames are checked by two checksums, and every length before memory is taken for it.
//!
//! `docs/protocol.md` is the bit-exact definition.

mod counters;
mod deadline;
mod error;
mod frame;
mod framed;
mod handshake;
mod hex;
mod key;
mod kind;
mod link;
pub mod memory;
mod paced;
mod peer;
mod run_id;
pub mod tcp;
#[cfg(test)]
mod testing;
mod text;
mod throttle;
mod tls;
mod transport;
mod wire;

pub use counters::{Counters, FrameTotals, Tally, Traffic};
pub use deadline::Deadlines;
pub use error::{FrameName, LinkError, Progress};
pub use frame::{Frame, FrameError, FrameHeader, HEADER_LEN, MAGIC, PROTOCOL_VERSION};
pub use handshake::{Difference, Differences, Hello, HelloError, LONGEST_HELLO, Terms, TermsError};
pub use key::{Fingerprint, KeyError, ParseKeyError, PublicKey, SecretKey};
pub use kind::{FrameClass, FrameKind};
pub use link::{FrameReceiver, FrameSender, LONGEST_REASON, Link, LinkConfig, WaitingFor};
pub use peer::{Peer, PeerAddress};
pub use run_id::{ParseRunIdError, RunId};
pub use throttle::{BURST, ParseRateError, Rate};
