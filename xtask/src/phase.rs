//! Named phases, run in order until one fails.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How a phase failed: the exit code to hand on, never 0.
pub(crate) type Outcome = Result<(), u8>;

/// One step of a task.
pub(crate) struct Phase<'a> {
    pub(crate) name: &'static str,
    pub(crate) work: Work<'a>,
}

pub(crate) enum Work<'a> {
    Run(Box<dyn Fn() -> Outcome + 'a>),
    /// Left out, for the reason given.
    Omit(&'static str),
}

/// Runs `phases` in order, with the wall time of each, and those left out, on `log`.
///
/// # Errors
///
/// The exit code of the first phase that fails; the ones after it do not run.
pub(crate) fn run(phases: &[Phase<'_>], log: &mut dyn Write) -> Outcome {
    let begin = Instant::now();
    let mut omitted = Vec::new();
    for phase in phases {
        let work = match &phase.work {
            Work::Run(work) => work,
            Work::Omit(reason) => {
                say(log, &format!("=== {}: NOT RUN: {reason}", phase.name));
                omitted.push(phase.name);
                continue;
            }
        };
        say(log, &format!("==> {}", phase.name));
        let start = Instant::now();
        let outcome = work();
        let seconds = tenths(start.elapsed());
        match outcome {
            Ok(()) => say(log, &format!("<== {}: passed in {seconds} s", phase.name)),
            Err(code) => {
                say(log, &format!("<== {}: FAILED after {seconds} s (exit code {code})", phase.name));
                return Err(code);
            }
        }
    }
    let seconds = tenths(begin.elapsed());
    if omitted.is_empty() {
        say(log, &format!("every phase passed in {seconds} s"));
    } else {
        say(log, &format!("every phase that ran passed in {seconds} s; not run: {}", omitted.join(", ")));
    }
    Ok(())
}

fn tenths(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// A log that cannot be written is no reason to fail a test run.
fn say(log: &mut dyn Write, line: &str) {
    let _: io::Result<()> = writeln!(log, "{line}");
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn first_failure_ends_the_run_with_its_code() {
        let ran = RefCell::new(Vec::new());
        let ran = &ran;
        let phase = |name, outcome| {
            let work = move || {
                ran.borrow_mut().push(name);
                outcome
            };
            Phase { name, work: Work::Run(Box::new(work)) }
        };
        let phases = [phase("one", Ok(())), phase("two", Err(7)), phase("three", Ok(()))];
        let mut log = Vec::new();

        assert_eq!(run(&phases, &mut log), Err(7));
        assert_eq!(*ran.borrow(), ["one", "two"]);
        let log = String::from_utf8(log).unwrap();
        assert!(log.contains("<== one: passed in 0.0 s"), "{log}");
        assert!(log.contains("<== two: FAILED after 0.0 s (exit code 7)"), "{log}");
        assert!(!log.contains("every"), "{log}");
    }

    fn passing() -> Phase<'static> {
        Phase { name: "only", work: Work::Run(Box::new(|| Ok(()))) }
    }

    #[test]
    fn all_phases_pass() {
        let mut log = Vec::new();
        assert_eq!(run(&[passing()], &mut log), Ok(()));
        assert!(String::from_utf8(log).unwrap().contains("every phase passed"));
    }

    #[test]
    fn omitted_phases_are_named() {
        let mut log = Vec::new();
        let phases = [Phase { name: "rare", work: Work::Omit("nobody asked") }, passing()];
        assert_eq!(run(&phases, &mut log), Ok(()));
        let log = String::from_utf8(log).unwrap();
        assert!(log.starts_with("=== rare: NOT RUN: nobody asked\n"), "{log}");
        assert!(log.ends_with("every phase that ran passed in 0.0 s; not run: rare\n"), "{log}");
    }
}
