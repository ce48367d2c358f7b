//! The two halves of a link, whatever carries it.

use std::sync::Arc;

use crate::{
    counters::Counters,
    deadline::Deadlines,
    error::{FrameName, LinkError},
    frame::FrameHeader,
    handshake::Hello,
    kind::FrameKind,
    peer::Peer,
    run_id::RunId,
    text,
    throttle::Rate,
};

/// The longest reason an abort carries, in bytes.
pub const LONGEST_REASON: usize = 1024;

/// What one end brings to a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// What this end says of itself, and what it requires to be equal.
    pub hello: Hello,
    /// How long anything may take.
    pub deadlines: Deadlines,
    /// What this end's sending is held to; free if absent.
    pub rate: Option<Rate>,
}

/// An open connection with a peer whose key and terms were checked.
///
/// The halves are independent: one thread sends while another receives.
pub struct Link {
    /// The other end.
    pub peer: Peer,
    /// The sending half.
    pub sender: Box<dyn FrameSender>,
    /// The receiving half.
    pub receiver: Box<dyn FrameReceiver>,
    /// What has passed, both ways.
    pub counters: Arc<Counters>,
}

/// The sending half of a link.
pub trait FrameSender: Send {
    /// Sends one frame. Returns once its last byte was handed to the transport.
    ///
    /// # Errors
    /// [`LinkError::StoppedReading`] when the peer takes nothing for the progress deadline (time in our own
    /// throttle does not count), [`LinkError::Broken`], [`LinkError::Vanished`], [`LinkError::Tls`];
    /// [`LinkError::Frame`] when the header does not fit the payload, in which case nothing was sent and the
    /// half stays usable. After any other error it is not.
    fn send(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), LinkError>;

    /// Ends the stream in good order: the peer's receiver gets [`LinkError::Closed`]. A half that is dropped
    /// without it is a peer that vanished.
    ///
    /// # Errors
    /// [`LinkError::NotClosed`].
    fn close(&mut self) -> Result<(), LinkError>;

    /// Tells the peer that this end gives up and why (the first [`LONGEST_REASON`] bytes).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn abort(&mut self, run: RunId, reason: &str) -> Result<(), LinkError> {
        let payload = text::prefix(reason, LONGEST_REASON).as_bytes();
        self.send(&FrameHeader::without_tensor(run, FrameKind::Abort, 0, 0, payload.len() as u64), payload)
    }
}

/// The receiving half of a link.
pub trait FrameReceiver: Send {
    /// Receives the next frame, of whatever kind; its payload replaces what `payload` held, whose memory is
    /// reused. After an error `payload` is empty.
    ///
    /// # Errors
    /// [`LinkError::Silent`] when nothing comes for the progress deadline; the half stays usable if not one
    /// byte of the frame had come. [`LinkError::PeerAborted`], [`LinkError::Closed`], [`LinkError::Vanished`],
    /// [`LinkError::Broken`], [`LinkError::Tls`], [`LinkError::OtherRun`], and [`LinkError::Frame`] for a frame
    /// that is damaged or longer than `waiting_for` allows, before memory is taken for it. After these the half
    /// is not usable.
    fn receive(&mut self, waiting_for: &WaitingFor, payload: &mut Vec<u8>) -> Result<FrameHeader, LinkError>;

    /// Takes and drops what still comes until the peer closes, for the progress deadline at most. A process that ends while the peer's bytes lie
    /// unread resets the connection, which can destroy its own last frame on the way: an abort's sender closes,
    /// then waits here.
    ///
    /// # Errors
    /// [`LinkError::NotClosed`] at the deadline, or when the stream ends in any other way.
    fn wait_for_close(&mut self) -> Result<(), LinkError>;
}

/// The frame that a receiver waits for: for the error text, and what it takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingFor {
    /// The frame that should be next. Another one may come; what to do with it is the caller's business.
    pub frame: FrameName,
    /// The longest payload to take, in bytes.
    pub longest_payload: u64,
}

impl WaitingFor {
    /// Waiting for this frame, with at most this many bytes of payload.
    pub fn new(kind: FrameKind, step: u64, micro_batch: u32, longest_payload: u64) -> Self {
        Self { frame: FrameName { kind, step, micro_batch }, longest_payload }
    }
}
