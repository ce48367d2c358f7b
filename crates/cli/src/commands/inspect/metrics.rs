//! A run's metrics.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thinwire_train::metrics::{EvalRecord, MetricsError, Record, StepRecord, read_records};

/// Of the complete lines of a `metrics.jsonl`; the run may still be going on.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    path: PathBuf,
    steps: usize,
    evaluations: usize,
    tokens: u64,
    seconds: f64,
    last_step: Option<StepRecord>,
    last_evaluation: Option<EvalRecord>,
}

pub(super) fn report(path: &Path) -> Result<Report, MetricsError> {
    let mut report = Report {
        kind: "metrics",
        path: path.into(),
        steps: 0,
        evaluations: 0,
        tokens: 0,
        seconds: 0.0,
        last_step: None,
        last_evaluation: None,
    };
    for record in read_records(path)? {
        match record {
            Record::Step(step) => {
                report.steps += 1;
                report.tokens = report.tokens.saturating_add(step.tokens);
                report.seconds += step.seconds;
                report.last_step = Some(step);
            }
            Record::Eval(evaluation) => {
                report.evaluations += 1;
                report.last_evaluation = Some(evaluation);
            }
        }
    }
    Ok(report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: metrics of {} steps and {} evaluations",
            self.path.display(),
            self.steps,
            self.evaluations
        )?;
        if let Some(last) = &self.last_step {
            write!(f, "\n  trained     {} tokens in {:.1} s of steps", self.tokens, self.seconds)?;
            write!(f, "\n  last step   {}, loss {:.4}", last.step, last.loss)?;
        }
        if let Some(last) = &self.last_evaluation {
            write!(f, "\n  evaluation  after step {}, perplexity {:.4}", last.step, last.perplexity)?;
        }
        Ok(())
    }
}
