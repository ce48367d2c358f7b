//! Time that a computation would have taken if no other process had wanted its cores.

use std::fs;
use std::time::Instant;

/// Started when it is made, on a thread of the pool that computes.
#[derive(Debug)]
pub(super) struct Stopwatch {
    begin: Instant,
    waited: Vec<u64>,
}

impl Stopwatch {
    /// Starts.
    pub(super) fn start() -> Self {
        // Waits are read within the time that is measured: what has been waited is part of it.
        Self { begin: Instant::now(), waited: waited() }
    }

    /// Seconds since it was started, without those that the thread held up most has waited for a core. Where the system
    /// does not tell as Linux does, they are counted.
    pub(super) fn seconds(&self) -> f64 {
        let each = waited().into_iter().zip(&self.waited).map(|(now, before)| now.saturating_sub(*before));
        let longest = each.max().unwrap_or(0);
        (self.begin.elapsed().as_secs_f64() - 1e-9 * longest as f64).max(0.0)
    }
}

/// Nanoseconds that each thread of the current pool has waited for a core so far.
fn waited() -> Vec<u64> {
    match rayon::current_thread_index() {
        Some(_) => rayon::broadcast(|_| waited_here()),
        None => vec![waited_here()],
    }
}

fn waited_here() -> u64 {
    schedstat(1)
}

/// Nanoseconds that this thread has been on a core so far; 0 where the system does not tell as Linux does.
pub(super) fn on_core() -> u64 {
    schedstat(0)
}

fn schedstat(field: usize) -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| parse(&text, field)).unwrap_or(0)
}

/// Nanoseconds on a core, nanoseconds waiting for one, turns (`Documentation/scheduler/sched-stats.rst` of Linux).
fn parse(text: &str, field: usize) -> Option<u64> {
    text.split_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("123 456 7\n", 0), Some(123));
        assert_eq!(parse("123 456 7\n", 1), Some(456));
        assert_eq!(parse("123", 1), None);
        assert_eq!(parse("1 x 2", 1), None);
    }

    #[test]
    fn time_passes_and_no_more_than_there_is() {
        let begin = Instant::now();
        let stopwatch = Stopwatch::start();
        let mut sum = 0u64;
        for i in 0..1_000_000 {
            sum = std::hint::black_box(sum + i);
        }
        let seconds = stopwatch.seconds();
        assert!(seconds > 0.0 && seconds <= begin.elapsed().as_secs_f64());
    }
}
