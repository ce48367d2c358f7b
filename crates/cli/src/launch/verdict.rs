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
    ended: BTreeMap<usize, bool>,
}

impl Verdict {
    pub(super) fn note(&mut self, said: &Said) {
        match said {
            Said::Event(Event::Failed { stage, error }) => self.told.push((*stage, error.clone())),
            Said::Nonsense { stage, line } => {
                self.told.push((*stage, format!("it printed what is no event: {}", line.escape_debug())));
            }
            Said::Ended { stage, status } => {
                let well = status.is_some_and(|status| status.success());
                if !well && !self.told.iter().any(|(told, _)| told == stage) {
                    self.silent.push((*stage, how(*status)));
                }
                self.ended.insert(*stage, well);
            }
            Said::Event(_) | Said::Line { .. } => {}
        }
    }

    /// Stages that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(super) fn failed(&self) -> bool {
        !self.told.is_empty() || !self.silent.is_empty()
    }

    /// The first cause: a stage that was killed could not tell; otherwise the error that does not speak of another
    /// stage's.
    pub(super) fn error(&self) -> Option<String> {
        let own = |(_, error): &&(usize, String)| !error.contains(" aborted: ") && !error.contains(" vanished: ");
        let (stage, error) = self
            .silent
            .first()
            .or_else(|| self.told.iter().find(own))
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
