//! Why a run failed: when one stage stops, the others stop because of it, and the first cause is what to show.

use std::collections::BTreeMap;
use std::process::ExitStatus;

use thinwire_train::metrics::Event;

use super::child::Said;

/// What is known of the stages' ends.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Errors that stages told, in the order they came.
    told: Vec<(usize, String)>,
    /// Stages that ended without telling why, by signal or otherwise.
    silent: Vec<(usize, String)>,
    /// Stages that printed what cannot be understood: half an event, if they were killed while they told it.
    confused: Vec<(usize, String)>,
    ended: BTreeMap<usize, bool>,
}

impl Verdict {
    pub(super) fn note(&mut self, said: &Said) {
        match said {
            Said::Event(Event::Failed { stage, error }) => self.told.push((*stage, error.clone())),
            Said::Nonsense { stage, line } => {
                self.confused.push((*stage, format!("it printed what is no event: {}", line.escape_debug())));
            }
            Said::Ended { stage, status } => {
                let well = status.is_some_and(|status| status.success());
                if !well && !self.told.iter().any(|(told, _)| told == stage) {
                    self.silent.push((*stage, how(*status)));
                }
                self.ended.insert(*stage, well);
            }
            Said::Event(_) | Said::Line { .. } | Said::Asked(_) => {}
        }
    }

    /// Stages that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(super) fn failed(&self) -> bool {
        !(self.told.is_empty() && self.silent.is_empty() && self.confused.is_empty())
    }

    /// The first cause: a stage that was killed could not tell; otherwise the error that does not speak of another
    /// stage's.
    pub(super) fn error(&self) -> Option<String> {
        let own =
            |(_, error): &&(usize, String)| !error.contains(" aborted: ") && !error.contains(" vanished: ");
        let (stage, error) = self
            .silent
            .first()
            .or_else(|| self.told.iter().find(own))
            .or_else(|| self.confused.first())
            .or_else(|| self.told.first())?;
        Some(format!("stage {stage}: {error}"))
    }
}

fn how(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("its process ended with {status}"),
        None => "its process is gone".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn told(stage: usize, error: &str) -> Said {
        Said::Event(Event::Failed { stage, error: error.to_owned() })
    }

    fn ended(stage: usize, script: &str) -> Said {
        Said::Ended { stage, status: Command::new("sh").args(["-c", script]).status().ok() }
    }

    fn verdict(said: &[Said]) -> Option<String> {
        let mut verdict = Verdict::default();
        for said in said {
            verdict.note(said);
        }
        assert_eq!(verdict.failed(), verdict.error().is_some());
        verdict.error()
    }

    #[test]
    fn the_first_cause_is_shown_whatever_is_heard_first() {
        let heard = "stage 1 at 127.0.0.1:9 (SHA256:x) aborted: stage 1: the disk is full";
        let vanished = "stage 1 at 127.0.0.1:9 (SHA256:x) vanished: the connection ended";
        let half = || Said::Nonsense { stage: 1, line: r#"{"event":"sp"#.to_owned() };
        let killed = "its process ended with signal: 9 (SIGKILL)";
        for (said, stage, expected) in [
            (vec![told(0, heard), told(1, "the disk is full")], 1, "the disk is full"),
            (vec![told(0, vanished), half(), ended(1, "kill -9 $$"), ended(0, "exit 1")], 1, killed),
            (vec![told(0, heard), ended(0, "exit 1")], 0, heard),
            (vec![half()], 1, r#"it printed what is no event: {\"event\":\"sp"#),
            (vec![ended(0, "exit 101"), ended(1, "exit 0")], 0, "its process ended with exit status: 101"),
        ] {
            assert_eq!(verdict(&said), Some(format!("stage {stage}: {expected}")));
        }
        assert_eq!(verdict(&[ended(0, "exit 0"), ended(1, "exit 0")]), None);
    }
}
