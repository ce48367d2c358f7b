//! `thinwire eval --choices`: accuracy on multiple-choice questions.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use thinwire_codec::CodecSpec;
use thinwire_train::choices::{Accuracy, Damaged, Encoded, Questions};
use thinwire_train::evaluate::{Boundary, Pipeline, SavedModel};

use crate::error::CommandError;
use crate::progress;
use crate::tensor_parallel::Sums;

/// Damaged lines that are named; all are counted.
const NAMED: usize = 20;

/// The result of `thinwire eval --choices`. The lists of boundaries have one entry for each, in model order.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Share of right answers by log-likelihood.
    pub(super) acc: f64,
    /// Standard error of `acc`; nothing for a single question.
    pub(super) acc_stderr: Option<f64>,
    /// By log-likelihood a character of the choice.
    pub(super) acc_norm: f64,
    pub(super) acc_norm_stderr: Option<f64>,
    /// By log-likelihood a byte.
    pub(super) acc_bytes: f64,
    /// By log-likelihood a token.
    pub(super) acc_tokens: f64,
    pub(super) questions: usize,
    /// Questions whose begin did not fit into the model.
    pub(super) truncated: usize,
    /// Lines that are no question.
    pub(super) damaged: usize,
    /// The first of them, and why.
    pub(super) damaged_lines: Vec<DamagedLine>,
    pub(super) bits_per_element: Vec<f64>,
    pub(super) rel_sq_error: Vec<f64>,
    /// The block behind each boundary.
    pub(super) boundaries: Vec<usize>,
    pub(super) codec: Vec<CodecSpec>,
    /// Of a model that ranks share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all_reduce: Option<Sums>,
    pub(super) model: PathBuf,
    /// Of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct DamagedLine {
    line: usize,
    reason: String,
}

/// Asks the questions; the report lacks where the model came from, and what its ranks did.
pub(super) fn accuracy(
    model: &SavedModel,
    Questions { questions, damaged }: Questions,
    pipeline: &mut Pipeline,
) -> Result<Report, CommandError> {
    let context = model.architecture().context;
    let start = Instant::now();
    let progress = progress::bar(questions.len() as u64, "questions");
    let (mut right, mut truncated) = (Accuracy::default(), 0);
    for question in &questions {
        let encoded = Encoded::new(question, model.tokenizer(), model.first(), context)?;
        let scores = encoded.score(pipeline, question)?;
        right.add(question, &encoded, &scores);
        truncated += usize::from(encoded.truncated);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let boundaries = pipeline.boundaries();
    let share = |right: usize| right as f64 / questions.len() as f64;
    let error = |count| Some(right.standard_error(count)).filter(|error| error.is_finite());
    Ok(Report {
        acc: share(right.plain),
        acc_stderr: error(right.plain),
        acc_norm: share(right.by_characters),
        acc_norm_stderr: error(right.by_characters),
        acc_bytes: share(right.by_bytes),
        acc_tokens: share(right.by_tokens),
        questions: questions.len(),
        truncated,
        damaged: damaged.len(),
        damaged_lines: damaged.iter().take(NAMED).map(DamagedLine::from).collect(),
        bits_per_element: boundaries.iter().map(Boundary::bits_per_element).collect(),
        rel_sq_error: boundaries.iter().map(Boundary::rel_sq_error).collect(),
        boundaries: boundaries.iter().map(Boundary::before).collect(),
        codec: boundaries.iter().map(Boundary::codec).collect(),
        all_reduce: None,
        model: PathBuf::new(),
        step: None,
        seconds: start.elapsed().as_secs_f64(),
    })
}

impl From<&Damaged> for DamagedLine {
    fn from(Damaged { line, reason }: &Damaged) -> Self {
        Self { line: *line, reason: reason.to_string() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step.map_or_else(String::new, |step| format!(", step {step}"));
        writeln!(f, "model       {}{step}", self.model.display())?;
        write!(f, "questions   {}", self.questions)?;
        if self.truncated > 0 {
            write!(f, ", {} longer than the model's context and cut off in front", self.truncated)?;
        }
        if self.damaged > 0 {
            write!(f, "; {} damaged lines left out", self.damaged)?;
        }
        writeln!(f, ", {:.1} s", self.seconds)?;
        for DamagedLine { line, reason } in &self.damaged_lines {
            writeln!(f, "  line {line}: {reason}")?;
        }
        let error = |error: Option<f64>| error.map_or_else(String::new, |error| format!(" +- {error:.4}"));
        writeln!(f, "acc         {:.4}{}", self.acc, error(self.acc_stderr))?;
        writeln!(f, "acc_norm    {:.4}{} (a character)", self.acc_norm, error(self.acc_norm_stderr))?;
        writeln!(f, "acc_bytes   {:.4} (a byte)", self.acc_bytes)?;
        write!(f, "acc_tokens  {:.4} (a token)", self.acc_tokens)?;
        if let Some(sums) = &self.all_reduce {
            write!(f, "\n{sums}")?;
        }
        if self.boundaries.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{:<10}{:>13}{:>16}  codec", "boundary", "bits/element", "rel. sq. error")?;
        let figures = self.bits_per_element.iter().zip(&self.rel_sq_error);
        for ((before, codec), (bits, error)) in self.boundaries.iter().zip(&self.codec).zip(figures) {
            write!(f, "\n{before:<10}{bits:>13.3}{error:>16.3e}  {codec}")?;
        }
        Ok(())
    }
}
