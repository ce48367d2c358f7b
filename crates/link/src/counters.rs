//! Bytes, frames and waiting time of a link, counted where they happen.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::kind::{FrameClass, FrameKind};

/// Both directions of one end of a link; read at any time from any thread.
#[derive(Debug, Default)]
pub struct Counters {
    /// What this end sent.
    pub sent: Tally,
    /// What this end received.
    pub received: Tally,
}

/// One direction, growing.
#[derive(Debug, Default)]
pub struct Tally {
    wire_bytes: AtomicU64,
    data: ClassTally,
    collective: ClassTally,
    control: ClassTally,
    paced_nanoseconds: AtomicU64,
    blocked_nanoseconds: AtomicU64,
}

#[derive(Debug, Default)]
struct ClassTally {
    frames: AtomicU64,
    payload_bytes: AtomicU64,
}

/// One direction at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes handed to, or taken from, the socket: TLS handshake, records and frame headers included, TCP
    /// and IP headers not. In memory: frame bytes.
    pub wire_bytes: u64,
    /// Frames that carry activations and gradients between stages.
    pub data: FrameTotals,
    /// Frames of sums over ranks.
    pub collective: FrameTotals,
    /// All other frames.
    pub control: FrameTotals,
    /// Time spent held back by the throttle (sending only).
    pub paced: Duration,
    /// Time spent inside the socket's write (sending) or read (receiving).
    pub blocked: Duration,
}

/// Complete frames of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameTotals {
    /// Number of frames.
    pub frames: u64,
    /// Their payloads, in bytes, without headers.
    pub payload_bytes: u64,
}

impl Tally {
    /// The totals so far. Each number is exact; numbers read while a frame passes need not belong together.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            wire_bytes: self.wire_bytes.load(Relaxed),
            data: self.data.totals(),
            collective: self.collective.totals(),
            control: self.control.totals(),
            paced: Duration::from_nanos(self.paced_nanoseconds.load(Relaxed)),
            blocked: Duration::from_nanos(self.blocked_nanoseconds.load(Relaxed)),
        }
    }

    pub(crate) fn count_wire(&self, bytes: usize) {
        self.wire_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn count_frame(&self, kind: FrameKind, payload_bytes: u64) {
        let class = match kind.class() {
            FrameClass::Data => &self.data,
            FrameClass::Collective => &self.collective,
            FrameClass::Control => &self.control,
        };
        class.frames.fetch_add(1, Relaxed);
        class.payload_bytes.fetch_add(payload_bytes, Relaxed);
    }

    pub(crate) fn count_paced(&self, time: Duration) {
        self.paced_nanoseconds.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub(crate) fn count_blocked(&self, time: Duration) {
        self.blocked_nanoseconds.fetch_add(time.as_nanos() as u64, Relaxed);
    }
}

impl ClassTally {
    fn totals(&self) -> FrameTotals {
        FrameTotals { frames: self.frames.load(Relaxed), payload_bytes: self.payload_bytes.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_kept_apart() {
        let tally = Tally::default();
        tally.count_frame(FrameKind::Forward, 10);
        tally.count_frame(FrameKind::EvalForward, 5);
        tally.count_frame(FrameKind::Control, 3);
        tally.count_frame(FrameKind::Collective, 7);
        tally.count_wire(100);
        let traffic = tally.traffic();
        assert_eq!(traffic.data, FrameTotals { frames: 2, payload_bytes: 15 });
        assert_eq!(traffic.collective, FrameTotals { frames: 1, payload_bytes: 7 });
        assert_eq!(traffic.control, FrameTotals { frames: 1, payload_bytes: 3 });
        assert_eq!(traffic.wire_bytes, 100);
    }
}
