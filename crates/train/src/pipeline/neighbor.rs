//! A neighbouring stage: two threads that encode and send, receive and decode, beside the computation.

mod receiving;
mod sending;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thinwire_codec::{Codec, SampleMemory, Shape};
use thinwire_link::{Counters, Link, RunId};

use self::receiving::ReceiverThread;
use self::sending::{Outgoing, SenderThread};
use super::compute::HostTensor;
use super::frames::{FrameKey, Side};
use super::inbox::Mailbox;
use super::meter::{Meter, Sent, Tracer, Work};
use crate::config::NonFinitePolicy;
use crate::data::MicroBatch;
use crate::memory::{BoundaryMemory, End};
use crate::metrics::{Direction, LinkReport};

/// What both threads of a neighbour need to know.
#[derive(Clone, Debug)]
pub struct Terms {
    /// This stage.
    pub stage: usize,
    /// The run, written into every frame.
    pub run: RunId,
    /// The largest tensor that may cross the boundary.
    pub largest: Shape,
    /// The longest control message, in bytes.
    pub longest_control: u64,
    /// What a value that is not finite does.
    pub non_finite: NonFinitePolicy,
    /// Every how many micro-batches the codec's error is measured; 0 never.
    pub error_every: u64,
    /// Frames that may wait to be sent.
    pub queue: usize,
    /// How long the neighbour may be silent while it owes a frame.
    pub deadline: Duration,
    /// How long after its arrival a frame is handed on.
    pub latency: Duration,
}

/// The engine's handle on a neighbour.
#[derive(Debug)]
pub(crate) struct Neighbor {
    terms: Terms,
    side: Side,
    peer: usize,
    outbox: Option<SyncSender<Outgoing>>,
    sender: Option<JoinHandle<()>>,
    meter: Arc<Meter>,
    counters: Arc<Counters>,
    memory: Option<BoundaryMemory>,
}

/// Codecs of a boundary, one instance for each thread.
#[derive(Debug)]
pub struct Codecs {
    /// For the tensors that leave.
    pub outgoing: Box<dyn Codec>,
    /// For those that come.
    pub incoming: Box<dyn Codec>,
    /// What one of them remembers.
    pub memory: Option<BoundaryMemory>,
}

impl Neighbor {
    /// Starts the two threads of `link`. What arrives, and their failures, go to `mailbox`.
    pub(crate) fn start(
        link: Link,
        side: Side,
        codecs: Codecs,
        terms: &Terms,
        mailbox: &Mailbox,
        tracer: &Arc<Tracer>,
    ) -> Self {
        let peer = link.peer.stage() as usize;
        let meter = Arc::new(Meter::default());
        let (outbox, queue) = sync_channel(terms.queue);
        let sender = SenderThread {
            terms: terms.clone(),
            peer,
            link: link.sender,
            codec: codecs.outgoing,
            mailbox: mailbox.clone(),
            meter: meter.clone(),
            tracer: tracer.clone(),
            lane: format!("send {}-{peer}", terms.stage),
            sent: 0,
        };
        let receiver = ReceiverThread {
            terms: terms.clone(),
            side,
            peer,
            link: link.receiver,
            codec: codecs.incoming,
            mailbox: mailbox.clone(),
            meter: meter.clone(),
            tracer: tracer.clone(),
            lane: format!("receive {peer}-{}", terms.stage),
        };
        let sender = spawn(format!("send to {peer}"), move || sender.run(&queue));
        // Not joined: it ends when the peer closes, which a dead peer never does.
        let _receiver = spawn(format!("receive from {peer}"), move || receiver.run());
        Self {
            terms: terms.clone(),
            side,
            peer,
            outbox: Some(outbox),
            sender: Some(sender),
            meter,
            counters: link.counters,
            memory: codecs.memory,
        }
    }

    /// The neighbour's stage number.
    pub(crate) fn peer(&self) -> usize {
        self.peer
    }

    /// How long it may be silent while it owes a frame.
    pub(crate) fn deadline(&self) -> Duration {
        self.terms.deadline
    }

    /// Queues a tensor of the samples of `batch`; blocks while the queue is full. `false` when the sender thread has ended, whose error is
    /// then in the inbox.
    #[must_use]
    pub(crate) fn send(&self, key: FrameKey, tensor: HostTensor, batch: &MicroBatch) -> bool {
        self.push(Outgoing::Tensor { key, tensor, ids: batch.ids.clone(), tag: batch.tag })
    }

    /// Queues the stand-in for a lost tensor.
    #[must_use]
    pub(crate) fn send_poisoned(&self, key: FrameKey) -> bool {
        self.push(Outgoing::Poisoned { key })
    }

    /// Queues a control message.
    #[must_use]
    pub(crate) fn send_control(&self, key: FrameKey, bytes: Vec<u8>) -> bool {
        self.push(Outgoing::Control { key, bytes })
    }

    fn push(&self, message: Outgoing) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.send(message).is_ok())
    }

    /// Sends what is queued, says goodbye and waits for the thread.
    pub(crate) fn close(mut self) {
        self.outbox = None;
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
    }

    /// Tells the neighbour why this stage stops, for at most `patience`; a neighbour that takes nothing is left alone.
    pub(crate) fn abort(mut self, reason: &str, patience: Duration) {
        let begin = Instant::now();
        if let (Some(outbox), Some(sender)) = (self.outbox.take(), self.sender.take()) {
            while !sender.is_finished() && begin.elapsed() < patience {
                if outbox.try_send(Outgoing::Abort { reason: reason.to_owned() }).is_ok() {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
            drop(outbox);
            while !sender.is_finished() && begin.elapsed() < patience {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Bytes that have come, to tell a slow link from a silent one.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.counters.received.traffic().wire_bytes
    }

    /// What this end of the boundary remembers.
    pub(crate) fn memory(&self) -> Option<&BoundaryMemory> {
        self.memory.as_ref()
    }

    /// Seconds that the threads have spent so far on `work`.
    pub(crate) fn seconds(&self, work: Work) -> f64 {
        self.meter.seconds(work)
    }

    /// What the outgoing direction has carried so far.
    pub(crate) fn report(&self) -> LinkReport {
        let Sent { elements, payload_bytes, messages, raw_messages, raw_bytes } = self.meter.sent();
        let error = self.meter.error();
        let sent = self.memory.as_ref().filter(|memory| memory.end == End::Sent);
        LinkReport {
            from: self.terms.stage,
            to: self.peer,
            direction: match self.side {
                Side::Previous => Direction::Backward,
                Side::Next => Direction::Forward,
            },
            wire_bytes: self.counters.sent.traffic().wire_bytes,
            payload_bytes,
            elements,
            messages,
            raw_messages,
            raw_bytes,
            memory_bytes: sent.map_or(0, |sent| sent.memory.bytes()),
            sq_error: error.sq_error,
            sq_signal: error.sq_signal,
        }
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name).spawn(body).expect("the system gives a thread")
}
