//! The exchange of hellos: whether two stages fit together.

mod hello;
mod terms;
#[cfg(test)]
mod tests;

pub use hello::{Hello, HelloError, LONGEST_HELLO};
pub use terms::{Difference, Differences, Terms, TermsError};

use crate::{
    error::LinkError,
    frame::FrameHeader,
    framed::{FramedReceiver, FramedSender},
    kind::FrameKind,
    link::{FrameSender as _, WaitingFor},
    peer::Peer,
    transport::{Sink, Source},
};

/// Sends our hello, receives the peer's, compares. Both ends do the same, so both learn of every difference.
pub(crate) fn exchange<Out: Sink, In: Source>(
    sender: &mut FramedSender<Out>,
    receiver: &mut FramedReceiver<In>,
    ours: &Hello,
    peer: &Peer,
) -> Result<(), LinkError> {
    let malformed = |source| LinkError::Hello { peer: peer.clone(), source };
    let bytes = ours.encode().map_err(malformed)?;
    let header = FrameHeader::without_tensor(ours.run, FrameKind::Hello, 0, 0, bytes.len() as u64);
    let sent = sender.send(&header, &bytes);

    // A peer that refuses us says why before it closes: what it sent explains more than our broken write.
    let mut theirs = Vec::new();
    let waiting_for = WaitingFor::new(FrameKind::Hello, 0, 0, LONGEST_HELLO as u64);
    let header = receiver.receive_any(&waiting_for, &mut theirs)?;
    sent?;
    if header.kind != FrameKind::Hello {
        return Err(malformed(HelloError::OtherKind { found: header.kind }));
    }
    let theirs = Hello::parse(header.run, &theirs).map_err(malformed)?;
    check(ours, &theirs, peer)
}

/// Refuses a peer that does not fit, with everything that differs.
pub(crate) fn check(ours: &Hello, theirs: &Hello, peer: &Peer) -> Result<(), LinkError> {
    let differences = Differences::between(ours, theirs);
    if differences.is_empty() {
        Ok(())
    } else {
        Err(LinkError::Disagreement { peer: peer.clone(), differences })
    }
}
