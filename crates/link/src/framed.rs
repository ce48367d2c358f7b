//! Frames over any transport: [`FrameSender`](crate::FrameSender) and [`FrameReceiver`](crate::FrameReceiver).

mod receiver;
mod sender;

pub(crate) use receiver::FramedReceiver;
pub(crate) use sender::FramedSender;

use std::time::{Duration, Instant};

use crate::{
    error::{FrameName, LinkError, Progress},
    peer::Peer,
    transport::Fault,
};

/// A frame under way.
struct Transfer {
    frame: FrameName,
    start: Instant,
    progress: Progress,
}

impl Transfer {
    fn start(frame: FrameName, of: Option<u64>) -> Self {
        Self { frame, start: Instant::now(), progress: Progress { done: 0, of } }
    }

    fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// What this half of the link says of a fault; `idle` makes the error for a deadline that passed.
    fn failed(
        &self,
        peer: &Peer,
        fault: Fault,
        idle: impl FnOnce(Peer, &Self, Duration) -> LinkError,
    ) -> LinkError {
        let (peer, frame, waited, progress) = (peer.clone(), self.frame, self.waited(), self.progress);
        match fault {
            Fault::Idle(time) => idle(peer, self, time),
            Fault::Closed => LinkError::Closed { peer, frame, waited, progress },
            Fault::Vanished => LinkError::Vanished { peer, frame, waited, progress },
            Fault::Broken(source) => LinkError::Broken { peer, frame, waited, progress, source },
            Fault::Tls(source) => LinkError::Tls { peer, frame, progress, source },
        }
    }
}

fn not_closed(peer: &Peer, start: Instant, fault: Fault) -> LinkError {
    LinkError::NotClosed { peer: peer.clone(), waited: start.elapsed(), source: fault.into() }
}
