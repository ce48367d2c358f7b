//! A run that ended because it was asked to.

use std::error::Error;
use std::fmt;

use crate::signals::Signal;

/// What was stopped, where, and how it goes on.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// `the run`, or a stage of it.
    pub(crate) what: String,
    pub(crate) signal: Signal,
    /// Steps done, if it is known.
    pub(crate) step: Option<u64>,
    /// Steps of the newest whole checkpoint.
    pub(crate) checkpoint: Option<u64>,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was stopped by {}", self.what, self.signal)?;
        match self.step {
            Some(step) => write!(f, " after step {step}")?,
            None => write!(f, " before its first step")?,
        }
        match self.checkpoint {
            Some(step) => write!(f, "; --resume continues it from the checkpoint of step {step}"),
            None => write!(f, "; it has no checkpoint yet: start anew with --overwrite"),
        }
    }
}

impl Error for Stopped {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_where_and_how_to_go_on() {
        let what = || "the run".to_owned();
        let stopped = Stopped { what: what(), signal: Signal::Interrupt, step: Some(7), checkpoint: Some(6) };
        let expected =
            "the run was stopped by SIGINT after step 7; --resume continues it from the checkpoint of step 6";
        assert_eq!(stopped.to_string(), expected);
        let stopped = Stopped { what: what(), signal: Signal::Terminate, step: None, checkpoint: None };
        let expected = "the run was stopped by SIGTERM before its first step; it has no checkpoint yet: start anew with \
                        --overwrite";
        assert_eq!(stopped.to_string(), expected);
    }
}
