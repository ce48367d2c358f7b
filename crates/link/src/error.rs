//! What can go wrong with a link.

use std::{fmt, io, net::SocketAddr, time::Duration};

use crate::{
    frame::FrameError,
    handshake::{Differences, HelloError},
    key::PublicKey,
    kind::FrameKind,
    peer::Peer,
    run_id::RunId,
};

/// Which frame an operation was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameName {
    /// Its kind.
    pub kind: FrameKind,
    /// Its step.
    pub step: u64,
    /// Its micro-batch.
    pub micro_batch: u32,
}

impl fmt::Display for FrameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FrameKind::Hello | FrameKind::Ready | FrameKind::Abort => self.kind.fmt(f),
            // Steps of frames count from 1: here nobody knows what comes next.
            kind if self.step == 0 => write!(f, "the next {kind} frame"),
            FrameKind::Control => write!(f, "control of step {}", self.step),
            kind => write!(f, "{kind} of step {}, micro-batch {}", self.step, self.micro_batch),
        }
    }
}

/// How far a frame had come when its transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of it that had been sent or received, header included.
    pub done: u64,
    /// Its whole length in bytes, where known: a receiver knows it once the header has come.
    pub of: Option<u64>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            Some(of) => write!(f, "{} of {of} bytes", self.done),
            None => write!(f, "{} bytes", self.done),
        }
    }
}

/// An operation on a link that failed. The text names the peer, the frame and the time; the source says more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The peer sent nothing for the whole deadline.
    #[error("{peer} was silent for {:.1} s while {frame} was awaited; {progress} had come", .waited.as_secs_f64())]
    Silent {
        /// The peer.
        peer: Peer,
        /// What was awaited.
        frame: FrameName,
        /// The time without a byte.
        waited: Duration,
        /// What had come.
        progress: Progress,
    },
    /// The peer took nothing for the whole deadline.
    #[error("{peer} took nothing for {:.1} s while {frame} was sent; {progress} had left", .waited.as_secs_f64())]
    StoppedReading {
        /// The peer.
        peer: Peer,
        /// What was being sent.
        frame: FrameName,
        /// The time without a byte.
        waited: Duration,
        /// What had left.
        progress: Progress,
    },
    /// The peer closed the link in good order, but more was awaited.
    #[error("{peer} closed the link after {:.1} s of waiting for {frame}; {progress} had come", .waited.as_secs_f64())]
    Closed {
        /// The peer.
        peer: Peer,
        /// What was awaited.
        frame: FrameName,
        /// The time waited.
        waited: Duration,
        /// What had come.
        progress: Progress,
    },
    /// The connection ended without a goodbye: the peer's process or machine is gone, or the path was cut.
    #[error("{peer} vanished: the connection ended without a goodbye after {:.1} s in {frame}, {progress} done",
        .waited.as_secs_f64())]
    Vanished {
        /// The peer.
        peer: Peer,
        /// What was under way.
        frame: FrameName,
        /// The time since it began.
        waited: Duration,
        /// How far it had come.
        progress: Progress,
    },
    /// The connection broke.
    #[error("the connection with {peer} broke after {:.1} s in {frame}, {progress} done", .waited.as_secs_f64())]
    Broken {
        /// The peer.
        peer: Peer,
        /// What was under way.
        frame: FrameName,
        /// The time since it began.
        waited: Duration,
        /// How far it had come.
        progress: Progress,
        /// What the operating system says: reset, no route, and the like.
        source: io::Error,
    },
    /// The peer's bytes are not what TLS expects.
    #[error("TLS with {peer} failed in {frame}, {progress} done")]
    Tls {
        /// The peer.
        peer: Peer,
        /// What was under way.
        frame: FrameName,
        /// How far it had come.
        progress: Progress,
        /// What is wrong.
        source: rustls::Error,
    },
    /// A frame to send or one that came is malformed or damaged.
    #[error("bad frame between us and {peer} at {frame}")]
    Frame {
        /// The peer.
        peer: Peer,
        /// What was sent or awaited.
        frame: FrameName,
        /// What is wrong with it.
        source: FrameError,
    },
    /// A frame of another run.
    #[error("{peer} sent a frame of run {found} while {frame} of run {ours} was awaited")]
    OtherRun {
        /// The peer.
        peer: Peer,
        /// What was awaited.
        frame: FrameName,
        /// Our run.
        ours: RunId,
        /// The frame's run.
        found: RunId,
    },
    /// The peer gave up, and says why.
    #[error("{peer} aborted: {reason}")]
    PeerAborted {
        /// The peer.
        peer: Peer,
        /// Its reason, at most 1,024 bytes, control characters escaped.
        reason: String,
    },
    /// This half of the link is of no use after an earlier error in the middle of a frame.
    #[error("the link with {peer} has failed before; {frame} cannot pass")]
    Unusable {
        /// The peer.
        peer: Peer,
        /// What was to pass.
        frame: FrameName,
    },
    /// The link did not end in good order.
    #[error("the link with {peer} was not closed in good order after {:.1} s", .waited.as_secs_f64())]
    NotClosed {
        /// The peer.
        peer: Peer,
        /// The time spent closing, or waiting for the peer to close.
        waited: Duration,
        /// Why.
        source: io::Error,
    },
    /// The two ends disagree; both see this.
    #[error("{peer} and this stage do not fit together:\n{differences}")]
    Disagreement {
        /// The peer.
        peer: Peer,
        /// Everything that differs, each with both values.
        differences: Differences,
    },
    /// The peer's hello, or our own, is malformed.
    #[error("bad hello between us and {peer}")]
    Hello {
        /// The peer.
        peer: Peer,
        /// What is wrong.
        source: HelloError,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address, as given.
        address: String,
        /// Why: in use, not ours, not an address.
        source: io::Error,
    },
    /// A connection that came could not be taken.
    #[error("cannot take a connection on {address}")]
    Accept {
        /// Where we listen.
        address: SocketAddr,
        /// Why: out of file descriptors, and the like.
        source: io::Error,
    },
    /// The address means nothing.
    #[error("cannot resolve the address {address}")]
    Resolve {
        /// The address, as given.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A TCP connection could not be made.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The TLS handshake did not come to its end.
    #[error("the TLS handshake with {address} failed after {:.1} s", .waited.as_secs_f64())]
    TlsHandshake {
        /// The other end.
        address: SocketAddr,
        /// The time since the connection was made.
        waited: Duration,
        /// Why.
        source: io::Error,
    },
    /// The other end holds another key than the pinned one.
    #[error("{address} has the key {presented}, but {pinned} is pinned for it")]
    WrongKey {
        /// The other end.
        address: SocketAddr,
        /// What it presented: its key as text, or what kind of thing it was instead.
        presented: String,
        /// What was expected.
        pinned: PublicKey,
    },
    /// The other end does not accept our key.
    #[error("{address} refuses our key {ours}; it has another one pinned for this stage")]
    KeyRefused {
        /// The other end.
        address: SocketAddr,
        /// Our key.
        ours: PublicKey,
    },
    /// Nobody with the pinned key came.
    #[error("stage {stage} with key {pinned} did not come to {address} within {:.1} s", .waited.as_secs_f64())]
    NobodyCame {
        /// The awaited stage.
        stage: u32,
        /// Its key.
        pinned: PublicKey,
        /// Where we listen.
        address: SocketAddr,
        /// The deadline.
        waited: Duration,
        /// Why the last connection that came was refused, if any came.
        source: Option<Box<LinkError>>,
    },
    /// No link within the deadline.
    #[error("stage {stage} could not be reached at {address} within {:.1} s, in {attempts} attempts",
        .waited.as_secs_f64())]
    Unreachable {
        /// The wanted stage.
        stage: u32,
        /// Where it should be.
        address: String,
        /// The time spent.
        waited: Duration,
        /// How often it was tried.
        attempts: u32,
        /// How the last attempt failed.
        source: Box<LinkError>,
    },
}

impl LinkError {
    /// Whether trying again cannot help: the other end is there, and it is the wrong one or set up differently.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::WrongKey { .. }
            | Self::KeyRefused { .. }
            | Self::Disagreement { .. }
            | Self::Hello { .. }
            | Self::Frame { .. } => true,
            // Not an address at all; a name that is not known may be known once its machine is up.
            Self::Resolve { source, .. } => source.kind() == io::ErrorKind::InvalidInput,
            _ => false,
        }
    }
}
