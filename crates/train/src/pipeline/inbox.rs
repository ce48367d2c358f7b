//! What the links' threads bring, sorted for the engine.

use std::collections::btree_map::Entry;
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
    early: BTreeMap<(usize, FrameKey), (Body, Instant)>,
    lost: Option<PipelineError>,
    /// What ends the run, once all that came before it has been taken.
    failed: Option<PipelineError>,
    waited: Duration,
}

/// What [`Inbox::take`] finds.
#[derive(Debug)]
enum Taken {
    /// The frame, which is no longer kept.
    Frame(Body),
    /// It is due after this time.
    OnItsWay(Duration),
    /// It has not come.
    Absent,
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
            failed: None,
            waited: Duration::ZERO,
        };
        (Self { arrivals, places }, inbox)
    }

    /// Adds a frame, for the engine to see once it is `due`, as soon as there is a place for it; `false` when the engine
    /// is gone.
    #[must_use]
    pub(crate) fn deliver(&self, from: usize, key: FrameKey, body: Body, due: Instant) -> bool {
        self.places.send(()).is_ok() && self.arrivals.send(Arrival::Frame { from, key, body, due }).is_ok()
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
        let body = self.wait_for(neighbor.peer(), key, neighbor.deadline(), &|| neighbor.received_bytes());
        self.waited += begin.elapsed();
        body
    }

    /// `received` tells the bytes that have come from `peer`.
    fn wait_for(
        &mut self,
        peer: usize,
        key: FrameKey,
        deadline: Duration,
        received: &dyn Fn() -> u64,
    ) -> Result<Body, PipelineError> {
        self.begin(key.step)?;
        let mut seen = received();
        loop {
            let (on_its_way, wait) = match self.take(peer, key, Instant::now()) {
                Taken::Frame(body) => return Ok(body),
                Taken::OnItsWay(left) => (true, left),
                Taken::Absent => match self.failed.take() {
                    Some(error) => return Err(error),
                    None => (false, deadline),
                },
            };
            match self.arrivals.recv_timeout(wait) {
                Ok(arrival) => self.sort(arrival)?,
                Err(RecvTimeoutError::Timeout) if on_its_way => {}
                Err(RecvTimeoutError::Timeout) => {
                    // A large frame on a slow link is progress, not silence.
                    let now = received();
                    if now == seen {
                        return Err(PipelineError::Silent { peer, frame: key, waited: deadline });
                    }
                    seen = now;
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("the engine keeps a mailbox"),
            }
        }
    }

    /// The frame, if it has come and is due at `now`.
    fn take(&mut self, from: usize, key: FrameKey, now: Instant) -> Taken {
        match self.early.entry((from, key)) {
            Entry::Vacant(_) => Taken::Absent,
            Entry::Occupied(frame) => match frame.get().1.checked_duration_since(now) {
                Some(left) if !left.is_zero() => Taken::OnItsWay(left),
                _ => Taken::Frame(frame.remove().0),
            },
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
            Arrival::Frame { from, key, body, due } => {
                let _ = self.places.try_recv(); // the place it took
                // A step ends on every stage before the next begins on any neighbour that could send for it.
                if key.step != self.step || !self.seen.insert((from, key)) {
                    return Err(PipelineError::Unexpected { peer: from, frame: key, step: self.step });
                }
                self.early.insert((from, key), (body, due));
                Ok(())
            }
            Arrival::Lost(error) => {
                self.lost.get_or_insert(error);
                Ok(())
            }
            Arrival::Failed(error) => {
                self.failed.get_or_insert(error);
                Ok(())
            }
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
        if let Some(error) = self.failed.take() {
            return error;
        }
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
        assert!(mailbox.deliver(0, key(1), Body::Poisoned, Instant::now()));
        mailbox.tell(Arrival::Failed(error()));
        assert_eq!(inbox.failure().to_string(), error().to_string());
        drop(inbox);
        assert!(!mailbox.deliver(0, key(1), Body::Poisoned, Instant::now()), "nobody is there");
    }

    #[test]
    fn frames_on_their_way_overlap_and_keep_their_order() {
        let (mailbox, mut inbox) = Mailbox::new(8);
        let latency = Duration::from_millis(20);
        let sent = Instant::now();
        let frame = |index| FrameKey { content: Content::Forward, step: 1, index };
        // One leaves every millisecond.
        for index in 0..8 {
            let due = sent + Duration::from_millis(index.into()) + latency;
            assert!(mailbox.deliver(0, frame(index), Body::Poisoned, due));
        }
        inbox.begin(1).unwrap();
        while let Ok(arrival) = inbox.arrivals.try_recv() {
            inbox.sort(arrival).unwrap();
        }
        // All are on their way at the same time, so the last is due 7 ms after the first and not 7 latencies.
        for index in 0..8 {
            let due = sent + Duration::from_millis(index.into()) + latency;
            let early = sent + Duration::from_millis(u64::from(index) + 19);
            let Taken::OnItsWay(left) = inbox.take(0, frame(index), early) else {
                panic!("frame {index} is early")
            };
            assert_eq!(left, Duration::from_millis(1));
            assert!(
                matches!(inbox.take(0, frame(index), due), Taken::Frame(Body::Poisoned)),
                "frame {index}"
            );
            assert!(matches!(inbox.take(0, frame(index), due), Taken::Absent), "frame {index} comes once");
        }
    }

    #[test]
    fn what_a_peer_sent_before_it_ended_is_taken_before_its_end() {
        let (mailbox, mut inbox) = Mailbox::new(2);
        let due = Instant::now() + Duration::from_millis(20);
        assert!(mailbox.deliver(2, key(1), Body::Poisoned, due));
        mailbox.tell(Arrival::Failed(error()));
        let hour = Duration::from_hours(1);
        let body = inbox.wait_for(2, key(1), hour, &|| 0).unwrap();
        assert!(matches!(body, Body::Poisoned) && Instant::now() >= due);
        let end = inbox.wait_for(2, key(1), hour, &|| 0).unwrap_err();
        assert_eq!(end.to_string(), error().to_string());
    }

    #[test]
    fn only_what_is_owed_is_kept() {
        let (_mailbox, mut inbox) = Mailbox::new(1);
        let frame = |step, content| Arrival::Frame {
            from: 1,
            key: FrameKey { content, ..key(step) },
            body: Body::Poisoned,
            due: Instant::now(),
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
