//! What ended because it was asked to.

use std::error::Error;
use std::fmt;

use crate::signals::Signal;

/// What was stopped, where, and how it goes on.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// `the run`, or a stage of it, or an experiment.
    what: String,
    pub(crate) signal: Signal,
    at: Place,
}

/// How far it had come.
#[derive(Debug)]
enum Place {
    /// Steps done, if it is known, and those of the newest whole checkpoint.
    Run { step: Option<u64>, checkpoint: Option<u64> },
    /// Rows done.
    Experiment { done: usize, rows: usize },
}

impl Stopped {
    /// A run, or a stage of it.
    pub(crate) fn run(what: &str, signal: Signal, step: Option<u64>, checkpoint: Option<u64>) -> Self {
        Self { what: what.to_owned(), signal, at: Place::Run { step, checkpoint } }
    }

    /// An experiment, of whose `rows` some are `done`.
    pub(crate) fn experiment(signal: Signal, done: usize, rows: usize) -> Self {
        Self { what: "the experiment".to_owned(), signal, at: Place::Experiment { done, rows } }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was stopped by {}", self.what, self.signal)?;
        match self.at {
            Place::Run { step, checkpoint } => {
                match step {
                    Some(step) => write!(f, " after step {step}")?,
                    None => write!(f, " before its first step")?,
                }
                match checkpoint {
                    Some(step) => write!(f, "; --resume continues it from the checkpoint of step {step}"),
                    None => write!(f, "; it has no checkpoint yet: start anew with --overwrite"),
                }
            }
            Place::Experiment { done, rows } => {
                write!(f, " with {done} of {rows} rows done; --resume keeps them and runs the others")
            }
        }
    }
}

impl Error for Stopped {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_where_and_how_to_go_on() {
        let stopped = Stopped::run("the run", Signal::Interrupt, Some(7), Some(6));
        let expected =
            "the run was stopped by SIGINT after step 7; --resume continues it from the checkpoint of step 6";
        assert_eq!(stopped.to_string(), expected);
        let stopped = Stopped::run("the run", Signal::Terminate, None, None);
        let expected = "the run was stopped by SIGTERM before its first step; it has no checkpoint yet: start anew with \
                        --overwrite";
        assert_eq!(stopped.to_string(), expected);
        let expected = "the experiment was stopped by SIGINT with 3 of 15 rows done; --resume keeps them and runs the others";
        assert_eq!(Stopped::experiment(Signal::Interrupt, 3, 15).to_string(), expected);
    }
}
