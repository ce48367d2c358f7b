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
    run_id::RunId,
    transport::{Sink, Source},
};

/// Sends our hello, receives the peer's, compares; then the same with a word of consent.
///
/// Both ends compare, so both learn of every difference. With the peer's consent it is known that our hello
/// arrived: a listener does not take a connection that its peer has given up meanwhile.
pub(crate) fn exchange<Out: Sink, In: Source>(
    sender: &mut FramedSender<Out>,
    receiver: &mut FramedReceiver<In>,
    ours: &Hello,
    peer: &Peer,
) -> Result<(), LinkError> {
    let malformed = |source| LinkError::Hello { peer: peer.clone(), source };
    let (run, theirs) =
        swap(sender, receiver, ours.run, FrameKind::Hello, &ours.encode().map_err(malformed)?)?;
    check(ours, &Hello::parse(run, &theirs).map_err(malformed)?, peer)?;
    swap(sender, receiver, ours.run, FrameKind::Ready, &[]).map(|_| ())
}

/// Sends one frame and receives one of the same kind: its run and payload.
fn swap<Out: Sink, In: Source>(
    sender: &mut FramedSender<Out>,
    receiver: &mut FramedReceiver<In>,
    run: RunId,
    kind: FrameKind,
    payload: &[u8],
) -> Result<(RunId, Vec<u8>), LinkError> {
    let header = FrameHeader::without_tensor(run, kind, 0, 0, payload.len() as u64);
    let sent = sender.send(&header, payload);
    // A peer that refuses us says why before it closes: what it sent explains more than our broken write.
    let mut theirs = Vec::new();
    let waiting_for = WaitingFor::new(kind, 0, 0, LONGEST_HELLO as u64);
    let header = receiver.receive_any(&waiting_for, &mut theirs)?;
    sent?;
    if header.kind == kind {
        Ok((header.run, theirs))
    } else {
        let source = HelloError::OtherKind { found: header.kind, expected: kind };
        Err(LinkError::Hello { peer: receiver.peer().clone(), source })
    }
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
