//! A direction held to a rate, for trying out slow links without changing the network.

mod rate;

pub use rate::{ParseRateError, Rate};

use std::time::{Duration, Instant};

/// What the credit of an idle link is limited to: at most this much time's worth of bytes leaves at once.
pub const BURST: Duration = Duration::from_millis(5);

/// The time a piece takes at the rate, within the limits below.
const PIECE: Duration = Duration::from_millis(2);
const SMALLEST_PIECE: usize = 64;
const LARGEST_PIECE: usize = 64 * 1024;

/// Time as the throttle sees it.
pub(crate) trait Clock: Send {
    fn now(&self) -> Instant;
    fn sleep(&self, time: Duration);
}

/// The real clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A token bucket, kept as the moment up to which the link's time is paid for.
///
/// A piece leaves once its own time has passed, so that `n` bytes never take less than `n / rate - BURST`.
pub(crate) struct Throttle<C = SystemClock> {
    rate: Rate,
    paid_until: Instant,
    /// When the last piece was let go, and how late that was.
    released: Instant,
    late: Duration,
    clock: C,
}

impl Throttle {
    pub(crate) fn new(rate: Rate) -> Self {
        Self::with_clock(rate, SystemClock)
    }
}

impl<C: Clock> Throttle<C> {
    fn with_clock(rate: Rate, clock: C) -> Self {
        let now = clock.now();
        Self { rate, paid_until: now, released: now, late: Duration::ZERO, clock }
    }

    /// The most bytes to [`pay`](Self::pay) for at once.
    pub(crate) fn piece(&self) -> usize {
        let bytes = self.rate.bits_per_second() as f64 / 8.0 * PIECE.as_secs_f64();
        (bytes as usize).clamp(SMALLEST_PIECE, LARGEST_PIECE)
    }

    /// Waits until `bytes` may leave; returns the time waited.
    pub(crate) fn pay(&mut self, bytes: usize) -> Duration {
        let now = self.clock.now();
        // The operating system wakes late; a transfer without a pause makes up for it, beyond the burst if need be.
        let paused = now.saturating_duration_since(self.released) > BURST;
        let credit = if paused { BURST } else { BURST.max(self.late) };
        if let Some(earliest) = now.checked_sub(credit) {
            self.paid_until = self.paid_until.max(earliest);
        }
        self.paid_until += self.rate.time_for(bytes);
        let wait = self.paid_until.saturating_duration_since(now);
        if !wait.is_zero() {
            self.clock.sleep(wait);
        }
        self.released = self.clock.now();
        self.late = self.released.saturating_duration_since(self.paid_until);
        self.released.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that moves when slept on, and oversleeps.
    struct TestClock {
        now: Cell<Instant>,
        late: Duration,
    }

    impl Clock for TestClock {
        fn now(&self) -> Instant {
            self.now.get()
        }

        fn sleep(&self, time: Duration) {
            self.now.set(self.now.get() + time + self.late);
        }
    }

    fn throttle(rate: u64, late: Duration) -> Throttle<TestClock> {
        let clock = TestClock { now: Cell::new(Instant::now() + Duration::from_hours(1)), late };
        Throttle::with_clock(Rate::bits(rate).unwrap(), clock)
    }

    fn transfer(throttle: &mut Throttle<TestClock>, bytes: usize) -> Duration {
        let start = throttle.clock.now();
        let mut left = bytes;
        while left > 0 {
            let piece = throttle.piece().min(left);
            throttle.pay(piece);
            left -= piece;
        }
        throttle.clock.now() - start
    }

    #[test]
    fn bytes_take_their_time_and_no_more() {
        for rate in [1_000, 56_000, 10_000_000, 100_000_000, 1_000_000_000, 100_000_000_000] {
            for late in [Duration::ZERO, Duration::from_micros(80), Duration::from_millis(12)] {
                let bytes = (rate / 8 * 2) as usize + 1;
                let mut throttle = throttle(rate, late);
                let taken = transfer(&mut throttle, bytes);
                let due = throttle.rate.time_for(bytes);
                assert!(taken + Duration::from_micros(1) >= due, "{rate}: {taken:?} < {due:?}");
                assert!(taken <= due + late + due / 100, "{rate}, {late:?}: {taken:?} > {due:?}");
            }
        }
    }

    #[test]
    fn an_idle_link_saves_no_more_than_the_burst() {
        let mut throttle = throttle(10_000_000, Duration::ZERO);
        transfer(&mut throttle, 10_000);
        throttle.clock.sleep(Duration::from_secs(100));
        let taken = transfer(&mut throttle, 1_250_000);
        assert!(taken + BURST >= Duration::from_secs(1), "{taken:?}");
        assert!(taken < Duration::from_secs(1));
    }

    #[test]
    fn a_pause_forfeits_what_a_late_wake_up_left() {
        let mut throttle = throttle(10_000_000, Duration::from_millis(50));
        throttle.pay(1);
        throttle.clock.late = Duration::ZERO;
        throttle.clock.sleep(Duration::from_secs(1));
        let taken = transfer(&mut throttle, 1_250_000);
        assert!(taken + BURST >= Duration::from_secs(1), "{taken:?}");
    }
}
