//! How long anything may take.

use std::time::{Duration, Instant};

/// The deadlines of a link. Nothing waits without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For a peer to come: from the call of `accept` or `connect` to a link. Default 60 s.
    pub connect: Duration,
    /// For one connection's TLS handshake and exchange of hellos, together. Default 10 s.
    pub handshake: Duration,
    /// For a frame, sent or awaited: the longest time without a single byte of progress. It has to exceed
    /// what a peer computes between two frames. Default 120 s.
    pub progress: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_mins(1),
            handshake: Duration::from_secs(10),
            progress: Duration::from_mins(2),
        }
    }
}

/// How long one operation of a transport may stay without progress.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// This long from the last byte.
    Idle(Duration),
    /// Until this moment, whatever arrives.
    Until(Instant),
}

impl Patience {
    /// The time a wait that starts now may take; zero when it is over.
    pub(crate) fn allowance(self) -> Duration {
        match self {
            Self::Idle(limit) => limit,
            Self::Until(end) => end.saturating_duration_since(Instant::now()),
        }
    }
}

/// A deadline that has started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    start: Instant,
    limit: Duration,
}

impl Countdown {
    pub(crate) fn start(limit: Duration) -> Self {
        Self { start: Instant::now(), limit }
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed()
    }

    /// The time left; zero when it is over.
    pub(crate) fn left(self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }

    /// The earlier of this deadline's end and `limit` from now.
    pub(crate) fn within(self, limit: Duration) -> Patience {
        Patience::Until(Instant::now() + self.left().min(limit))
    }
}
