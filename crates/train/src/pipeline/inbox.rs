//! What the links' threads bring, sorted for the engine.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use thinwire_link::LinkError;

use super::error::PipelineError;
use super::frames::{Arrival, Body, FrameKey, Side};
use super::neighbor::Neighbor;

/// How long a broken link may take to deliver the reason its peer gave.
const GRACE: Duration = Duration::from_millis(500);

/// Waits for frames by name; those that come early are kept.
#[derive(Debug)]
pub(crate) struct Inbox {
    arrivals: Receiver<Arrival>,
    early: BTreeMap<(Side, FrameKey), Body>,
    lost: Vec<PipelineError>,
    deadline: Duration,
    waited: Duration,
}

impl Inbox {
    pub(crate) fn new(arrivals: Receiver<Arrival>, deadline: Duration) -> Self {
        Self { arrivals, early: BTreeMap::new(), lost: Vec::new(), deadline, waited: Duration::ZERO }
    }

    /// Waits for frame `key` from a neighbour while anything at all arrives within the deadline.
    pub(crate) fn wait(&mut self, from: Side, neighbor: &Neighbor, key: FrameKey) -> Result<Body, PipelineError> {
        let begin = Instant::now();
        let body = self.wait_inner(from, neighbor, key);
        self.waited += begin.elapsed();
        body
    }

    fn wait_inner(&mut self, from: Side, neighbor: &Neighbor, key: FrameKey) -> Result<Body, PipelineError> {
        let mut seen = neighbor.received_bytes();
        loop {
            if let Some(body) = self.early.remove(&(from, key)) {
                return Ok(body);
            }
            match self.arrivals.recv_timeout(self.deadline) {
                Ok(arrival) => self.sort(arrival, key.step, neighbor)?,
                Err(RecvTimeoutError::Timeout) => {
                    // A large frame on a slow link is progress, not silence.
                    let now = neighbor.received_bytes();
                    if now == seen {
                        let waited = self.deadline;
                        return Err(PipelineError::Silent { peer: neighbor.peer(), frame: key, waited });
                    }
                    seen = now;
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("the engine keeps a sender"),
            }
        }
    }

    fn sort(&mut self, arrival: Arrival, step: u64, neighbor: &Neighbor) -> Result<(), PipelineError> {
        match arrival {
            Arrival::Frame { from, key, body } => {
                // A step ends on every stage before the next begins on any neighbour that could send for it.
                let expected = key.step == step && self.early.insert((from, key), body).is_none();
                if expected { Ok(()) } else { Err(PipelineError::Unexpected { peer: neighbor.peer(), frame: key, step }) }
            }
            Arrival::Lost(error) => {
                self.lost.push(error);
                Ok(())
            }
            Arrival::Failed(error) => Err(error),
        }
    }

    /// The better of `error` and what still arrives: the reason a peer gave for stopping explains a broken link.
    pub(crate) fn explain(&self, error: PipelineError) -> PipelineError {
        let broken = match &error {
            PipelineError::Link(LinkError::PeerAborted { .. }) => false,
            PipelineError::Link(_) => true,
            _ => false,
        };
        let end = Instant::now() + GRACE;
        while broken {
            match self.arrivals.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Arrival::Failed(reason @ PipelineError::Link(LinkError::PeerAborted { .. }))) => return reason,
                Ok(Arrival::Failed(reason)) if !matches!(reason, PipelineError::Link(_)) => return reason,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        error
    }

    /// A failure that has arrived, when a queue turns out to be closed.
    pub(crate) fn failure(&mut self) -> PipelineError {
        loop {
            match self.arrivals.recv() {
                Ok(Arrival::Failed(error)) => return error,
                Ok(_) => {}
                Err(_) => unreachable!("the engine keeps a sender"),
            }
        }
    }

    /// Tensors that this stage could not send, as far as it has heard.
    pub(crate) fn take_lost(&mut self) -> Vec<PipelineError> {
        std::mem::take(&mut self.lost)
    }

    /// Time spent waiting since the last call.
    pub(crate) fn take_waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }
}
