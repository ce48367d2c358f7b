//! Time and error, measured where they happen: by the threads of a link and by the computing thread.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use thinwire_codec::ErrorStats;

use crate::metrics::Span;

/// What one outgoing direction has carried, and how long both directions of a link have worked.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    encode: AtomicU64,
    send: AtomicU64,
    decode: AtomicU64,
    sent: Mutex<Sent>,
    error: Mutex<ErrorStats>,
}

/// The tensors that one direction has carried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) elements: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) messages: u64,
    pub(crate) raw_messages: u64,
    pub(crate) raw_bytes: u64,
}

/// A link thread's kind of work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Encode,
    Send,
    Decode,
}

impl Meter {
    fn clock(&self, work: Work) -> &AtomicU64 {
        match work {
            Work::Encode => &self.encode,
            Work::Send => &self.send,
            Work::Decode => &self.decode,
        }
    }

    /// Adds time.
    pub(crate) fn add_time(&self, work: Work, time: Duration) {
        self.clock(work).fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Seconds of `work` so far.
    pub(crate) fn seconds(&self, work: Work) -> f64 {
        self.clock(work).load(Relaxed) as f64 * 1e-9
    }

    /// Counts an encoded tensor; `raw` if it was below the codec's threshold.
    pub(crate) fn count(&self, elements: usize, payload_bytes: usize, raw: bool) {
        let mut sent = self.sent.lock().expect("no holder panics");
        sent.elements += elements as u64;
        sent.payload_bytes += payload_bytes as u64;
        sent.messages += 1;
        if raw {
            sent.raw_messages += 1;
            sent.raw_bytes += payload_bytes as u64;
        }
    }

    /// What has been counted so far.
    pub(crate) fn sent(&self) -> Sent {
        *self.sent.lock().expect("no holder panics")
    }

    /// Adds a measured message.
    pub(crate) fn add_error(&self, stats: &ErrorStats) {
        self.error.lock().expect("no holder panics").merge(stats);
    }

    /// Errors of the messages measured so far.
    pub(crate) fn error(&self) -> ErrorStats {
        *self.error.lock().expect("no holder panics")
    }
}

/// Collects what the threads did, for the trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    start: Instant,
    start_us: u64,
    /// `None` when no trace is wanted.
    spans: Option<Mutex<Vec<Span>>>,
}

impl Tracer {
    /// A tracer whose clock starts now.
    pub(crate) fn new(enabled: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            start: Instant::now(),
            start_us: since_epoch.as_micros() as u64,
            spans: enabled.then(Mutex::default),
        }
    }

    /// Records that `lane` did `name` from `begin` until now, and returns how long that was.
    pub(crate) fn record(
        &self,
        lane: &str,
        name: &'static str,
        begin: Instant,
        step: u64,
        micro_batch: Option<u32>,
    ) -> Duration {
        let time = begin.elapsed();
        if let Some(spans) = &self.spans {
            let offset = begin.saturating_duration_since(self.start).as_micros() as u64;
            spans.lock().expect("no holder panics").push(Span {
                name: name.into(),
                lane: lane.to_owned().into(),
                start_us: self.start_us + offset,
                duration_us: time.as_micros() as u64,
                step,
                micro_batch,
            });
        }
        time
    }

    /// Takes what was recorded.
    pub(crate) fn take(&self) -> Vec<Span> {
        match &self.spans {
            Some(spans) => std::mem::take(&mut *spans.lock().expect("no holder panics")),
            None => Vec::new(),
        }
    }
}
