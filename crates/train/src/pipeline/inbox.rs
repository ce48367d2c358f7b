//! What the links' threads bring, sorted for the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use thinwire_link::LinkError;

use super::error::PipelineError;
use super::frames::{Arrival, Body, FrameKey};
use super::neighbor::Neighbor;

/// How long a broken link may take to deliver the reason its peer gave.
const GRACE: Duration = Duration::from_millis(500);

/// Where the links' threads put what they bring.
///
/// Frames wait for a free place, so that a fast neighbour is held back; failures never do, or one could be stuck
/// behind the frames of an engine that waits for the thread that failed.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    arrivals: Sender<Arrival>,
    places: SyncSender<()>,
}

/// Waits for frames by name; those that come early are kept.
#[derive(Debug)]
pub(crate) struct Inbox {
    arrivals: Receiver<Arrival>,
    places: Receiver<()>,
    /// The step in progress.
    step: u64,
    /// Every frame of the step so far, by sender.
    seen: BTreeSet<(usize, FrameKey)>,
    /// Those of them that nobody has asked for yet.
    early: BTreeMap<(usize, FrameKey), Body>,
    lost: Option<PipelineError>,
    waited: Duration,
}

impl Mailbox {
    /// An empty mailbox with places for `capacity` frames, and the engine's end of it.
    pub(crate) fn new(capacity: usize) -> (Self, Inbox) {
        let (arrivals, received) = channel();
        let (places, taken) = sync_channel(capacity);
        let inbox = Inbox {
            arrivals: received,
            places: taken,
            step: 0,
            seen: BTreeSet::new(),
            early: BTreeMap::new(),
            lost: None,
            waited: Duration::ZERO,
        };
        (Self { arrivals, places }, inbox)
    }

    /// Adds a frame once there is a place for it; `false` when the engine is gone.
    #[must_use]
    pub(crate) fn deliver(&self, from: usize, key: FrameKey, body: Body) -> bool {
        self.places.send(()).is_ok() && self.arrivals.send(Arrival::Frame { from, key, body }).is_ok()
    }

    /// Adds what is not a frame, at once.
    pub(crate) fn tell(&self, arrival: Arrival) {
        // An engine that is gone has nothing left to learn.
        let _ = self.arrivals.send(arrival);
    }
}

impl Inbox {
    /// Waits for frame `key` from a neighbour while anything at all arrives within the neighbour's deadline.
    pub(crate) fn wait(&mut self, neighbor: &Neighbor, key: FrameKey) -> Result<Body, PipelineError> {
        let begin = Instant::now();
        let body = self.wait_inner(neighbor, key);
        self.waited += begin.elapsed();
        body
    }

    fn wait_inner(&mut self, neighbor: &Neighbor, key: FrameKey) -> Result<Body, PipelineError> {
        self.begin(key.step)?;
        let mut seen = neighbor.received_bytes();
        loop {
            if let Some(body) = self.early.remove(&(neighbor.peer(), key)) {
                return Ok(body);
            }
            match self.arrivals.recv_timeout(neighbor.deadline()) {
                Ok(arrival) => self.sort(arrival)?,
                Err(RecvTimeoutError::Timeout) => {
                    // A large frame on a slow link is progress, not silence.
                    let now = neighbor.received_bytes();
                    if now == seen {
                        let waited = neighbor.deadline();
                        return Err(PipelineError::Silent { peer: neighbor.peer(), frame: key, waited });
                    }
                    seen = now;
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("the engine keeps a mailbox"),
            }
        }
    }

    /// Turns to `step`; a frame of the step before that nobody asked for was not owed.
    fn begin(&mut self, step: u64) -> Result<(), PipelineError> {
        if step == self.step {
            return Ok(());
        }
        if let Some((&(peer, frame), _)) = self.early.first_key_value() {
            return Err(PipelineError::Unexpected { peer, frame, step: self.step });
        }
        self.step = step;
        self.seen.clear();
        Ok(())
    }

    fn sort(&mut self, arrival: Arrival) -> Result<(), PipelineError> {
        match arrival {
            Arrival::Frame { from, key, body } => {
                let _ = self.places.try_recv(); // the place it took
                // A step ends on every stage before the next begins on any neighbour that could send for it.
                if key.step != self.step || !self.seen.insert((from, key)) {
                    return Err(PipelineError::Unexpected { peer: from, frame: key, step: self.step });
                }
                self.early.insert((from, key), body);
                Ok(())
            }
            Arrival::Lost(error) => {
                self.lost.get_or_insert(error);
                Ok(())
            }
            Arrival::Failed(error) => Err(error),
        }
    }

    /// The better of `error` and what still arrives: the reason a peer gave for stopping explains a link that ended.
    pub(crate) fn explain(&self, error: PipelineError) -> PipelineError {
        if !is_an_end(&error) {
            return error;
        }
        let end = Instant::now() + GRACE;
        while let Ok(arrival) = self.arrivals.recv_timeout(end.saturating_duration_since(Instant::now())) {
            match arrival {
                Arrival::Failed(reason) if !is_an_end(&reason) => return reason,
                // A peer may have sent frames ahead of its reason.
                Arrival::Frame { .. } => drop(self.places.try_recv()),
                Arrival::Failed(_) | Arrival::Lost(_) => {}
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
                Err(_) => unreachable!("the engine keeps a mailbox"),
            }
        }
    }

    /// The first tensor of the step that this stage could not send, as far as it has heard.
    pub(crate) fn take_lost(&mut self) -> Option<PipelineError> {
        self.lost.take()
    }

    /// Time spent waiting since the last call.
    pub(crate) fn take_waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }
}

/// Whether all that an error tells is that a link is no more. Others are causes: a peer that stops because of them
/// cannot say it better.
fn is_an_end(error: &PipelineError) -> bool {
    use LinkError::{Broken, Closed, Unusable, Vanished};
    let PipelineError::Link(link) = error else { return false };
    matches!(link, Closed { .. } | Vanished { .. } | Broken { .. } | Unusable { .. })
}

#[cfg(test)]
mod tests {
    use super::super::frames::{Content, Topic};
    use super::*;

    fn key(step: u64) -> FrameKey {
        FrameKey::control(Topic::Step, step)
    }

    fn error() -> PipelineError {
        PipelineError::Silent { peer: 2, frame: key(1), waited: Duration::ZERO }
    }

    #[test]
    fn a_failure_needs_no_place() {
        let (mailbox, mut inbox) = Mailbox::new(1);
        assert!(mailbox.deliver(0, key(1), Body::Poisoned));
        mailbox.tell(Arrival::Failed(error()));
        assert_eq!(inbox.failure().to_string(), error().to_string());
        drop(inbox);
        assert!(!mailbox.deliver(0, key(1), Body::Poisoned), "nobody is there");
    }

    #[test]
    fn only_what_is_owed_is_kept() {
        let (_mailbox, mut inbox) = Mailbox::new(1);
        let frame = |step, content| Arrival::Frame {
            from: 1,
            key: FrameKey { content, ..key(step) },
            body: Body::Poisoned,
        };
        inbox.begin(1).unwrap();
        inbox.sort(frame(1, Content::Forward)).unwrap();
        inbox.early.clear(); // the engine took it
        for (wrong, what) in [(1, "a second time"), (2, "of a later step"), (0, "of an earlier step")] {
            let error = inbox.sort(frame(wrong, Content::Forward)).unwrap_err();
            assert!(matches!(error, PipelineError::Unexpected { peer: 1, step: 1, .. }), "{what}: {error}");
        }
        inbox.sort(frame(1, Content::Backward)).unwrap();
        let error = inbox.begin(2).unwrap_err();
        assert!(matches!(error, PipelineError::Unexpected { peer: 1, step: 1, .. }), "left over: {error}");
    }
}
