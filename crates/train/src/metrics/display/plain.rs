//! Plain lines, for a log file or a pipe.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::super::text;
use super::Progress;
use super::screen::Draw;

/// Time between two lines about steps.
const INTERVAL: Duration = Duration::from_secs(10);

/// A line for the first step, then one every [`INTERVAL`], one for each evaluation, and one for the last state.
pub(in super::super) struct Plain {
    out: Box<dyn Write + Send>,
    interval: Duration,
    /// When the first line was due, and the steps done by then.
    first: Option<(Instant, u64)>,
    /// When the last line was written, and what it showed.
    last: Option<(Instant, Mark)>,
}

/// Steps done, and the step of the last evaluation.
type Mark = (u64, Option<u64>);

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl Plain {
    pub(super) fn stderr() -> Plain {
        Plain::on(Box::new(io::stderr()), INTERVAL)
    }

    fn on(out: Box<dyn Write + Send>, interval: Duration) -> Plain {
        Plain { out, interval, first: None, last: None }
    }

    fn show(&mut self, progress: &Progress) {
        let left = text::duration(self.seconds_left(progress));
        let links = progress.step.iter().flat_map(|step| &step.links);
        let mut sent = text::bytes(links.map(|link| link.total_bytes).sum());
        let ranks = progress.step.iter().flat_map(|step| &step.all_reduces).map(|all| all.total_bytes);
        if let Some(between) = ranks.reduce(|sum, bytes| sum + bytes) {
            sent = format!("{sent}, between ranks {}", text::bytes(between));
        }
        let (done, total) = (progress.done(), progress.total_steps);
        self.note(&format!("step {done}/{total}   {}   sent {sent}   {left} left", progress.headline()));
        self.last = Some((Instant::now(), mark(progress)));
    }

    /// From the mean time of the steps since the first line, evaluations and checkpoints included.
    fn seconds_left(&mut self, progress: &Progress) -> f64 {
        let done = progress.done();
        let (begun, before) = *self.first.get_or_insert_with(|| (Instant::now(), done));
        let seconds_per_step = match done.saturating_sub(before) {
            0 => progress.step.as_ref().map_or(f64::NAN, |step| step.seconds),
            steps => begun.elapsed().as_secs_f64() / steps as f64,
        };
        progress.total_steps.saturating_sub(done) as f64 * seconds_per_step
    }
}

impl Draw for Plain {
    fn update(&mut self, progress: &Progress) {
        let (_, evaluated) = mark(progress);
        let due =
            self.last.is_none_or(|(time, shown)| time.elapsed() >= self.interval || shown.1 != evaluated);
        if due {
            self.show(progress);
        }
    }

    fn note(&mut self, line: &str) {
        // A run goes on without its display.
        let _ = writeln!(self.out, "{line}");
    }

    fn finish(&mut self, progress: &Progress) {
        if self.last.is_none_or(|(_, shown)| shown != mark(progress)) {
            self.show(progress);
        }
    }
}

fn mark(progress: &Progress) -> Mark {
    (progress.done(), progress.heldout.as_ref().map(|eval| eval.step))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::super::samples;
    use super::*;

    /// A log that the test can read while the display owns it.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Log {
        fn lines(&self) -> Vec<String> {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
        }
    }

    #[test]
    fn a_line_at_first_for_an_evaluation_and_at_the_end() {
        let log = Log::default();
        let mut plain = Plain::on(Box::new(log.clone()), Duration::from_hours(1));
        let mut progress = Progress { total_steps: 4, ..Progress::default() };
        for step in 1..=4 {
            progress.step = Some(samples::step_record(step));
            plain.update(&progress);
            if step == 2 {
                progress.heldout = Some(samples::eval_record(step));
                plain.update(&progress);
            }
        }
        plain.finish(&progress);
        plain.finish(&progress);
        let starts: Vec<_> = log.lines().iter().map(|line| line[..8].to_owned()).collect();
        assert_eq!(starts, ["step 1/4", "step 2/4", "step 4/4"]);
        assert!(log.lines()[0].contains("held-out perplexity -"));
        assert!(log.lines()[1].contains("held-out perplexity 71.30"));
        assert!(log.lines()[2].ends_with("0.00 s left"));
    }

    #[test]
    fn a_line_whenever_the_interval_is_over() {
        let log = Log::default();
        let mut plain = Plain::on(Box::new(log.clone()), Duration::ZERO);
        for step in 1..=3 {
            let step = Some(samples::step_record(step));
            plain.update(&Progress { total_steps: 3, step, ..Progress::default() });
        }
        assert_eq!(log.lines().len(), 3);
        assert!(
            log.lines()[0].ends_with("sent 22.0 kB, between ranks 400 B   2.00 s left"),
            "{:?}",
            log.lines()
        );
    }
}
