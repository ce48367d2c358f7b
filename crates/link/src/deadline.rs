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

/// Longer than any run: what deadlines are cut to, so that moments can be computed from them.
const A_YEAR: Duration = Duration::from_hours(365 * 24);

impl Patience {
    /// Until this long from now.
    pub(crate) fn until(limit: Duration) -> Self {
        Self::Until(Instant::now() + limit.min(A_YEAR))
    }

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
        Patience::until(self.left().min(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_deadlines_are_no_overflow() {
        let countdown = Countdown::start(Duration::MAX);
        assert!(countdown.within(Duration::MAX).allowance() > Duration::from_hours(1));
        assert!(!countdown.is_over());
    }

    #[test]
    fn the_nearer_end_counts() {
        let over = Countdown::start(Duration::ZERO);
        assert!(over.is_over());
        assert!(over.within(Duration::from_hours(1)).allowance().is_zero());
        let long = Countdown::start(Duration::from_hours(1));
        assert!(long.within(Duration::from_secs(1)).allowance() <= Duration::from_secs(1));
    }
}
