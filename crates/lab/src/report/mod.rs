//! The report of an experiment: rows set against their reference, as tables and pictures.

mod compare;
mod csv;
mod figures;
mod html;
mod plot;
mod spread;
mod table;
#[cfg(test)]
mod tests;
mod write;

use serde::Serialize;
use thinwire_train::fidelity::Fidelity;

use crate::experiment::{Coordinates, Experiment};
use crate::folder::{Finished, Outcome};
use crate::network::LinkRate;

pub use compare::{Group, LossDifference, Speedup};
pub use figures::{Figures, LossPoint, StageFigures, Traffic};
pub use spread::{Mean, Quartiles};

/// Everything that is known of an experiment.
///
/// In JSON, a number that is not finite is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `lab.title`
    pub title: String,
    /// Thinwire's version.
    pub version: String,
    /// The experiment file.
    pub experiment: String,
    /// The command that ran it.
    pub command: String,
    /// The setting that all are relative to.
    pub reference: String,
    /// Further settings over which speed-ups are told.
    pub compare: Vec<String>,
    /// Steps at the start that are in no figure of speed.
    pub warmup: u64,
    /// Every row, in the order of the matrix.
    pub rows: Vec<ReportRow>,
    /// The rows of each place in the matrix, over their seeds.
    pub groups: Vec<Group>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportRow {
    /// Where it is in the matrix.
    #[serde(flatten)]
    pub at: Coordinates,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// What it came to; of a failed one, the steps that there are.
    #[serde(flatten)]
    pub figures: Figures,
    /// Over the reference first, then over `compare`, each of the same link, variant and seed.
    pub speedups: Vec<Speedup>,
    /// From the reference of the same link, variant and seed.
    pub loss_difference: Option<LossDifference>,
    /// Gradients compared, in the order of their steps; of a row that ran as stages, none.
    pub fidelity: Vec<Fidelity>,
    /// What the links carried before the run.
    pub links_before: Vec<LinkRate>,
    /// The same after it.
    pub links_after: Vec<LinkRate>,
    /// The command that makes the same run by itself, without the network.
    pub command: Vec<String>,
}

impl Report {
    /// Sets the rows against each other. Each comes with its figures.
    pub fn new(
        experiment: &Experiment,
        rows: Vec<(Finished, Figures)>,
        version: &str,
        command: &str,
    ) -> Self {
        let rows = rows.into_iter().map(|(row, figures)| ReportRow::new(row, figures)).collect();
        let lab = &experiment.lab;
        let mut report = Self {
            title: lab.title.clone(),
            version: version.to_owned(),
            experiment: experiment.text.clone(),
            command: command.to_owned(),
            reference: lab.reference.clone(),
            compare: lab.compare.clone(),
            warmup: lab.warmup,
            rows,
            groups: Vec::new(),
        };
        let mut rows = std::mem::take(&mut report.rows);
        compare::relate(&mut rows, &report.reference, &report.references().collect::<Vec<_>>());
        report.groups = compare::groups(&rows);
        report.rows = rows;
        report
    }

    /// Rows that failed.
    pub fn failed(&self) -> impl Iterator<Item = &ReportRow> {
        self.rows.iter().filter(|row| row.error.is_some())
    }

    /// The settings over which speed-ups are told.
    fn references(&self) -> impl Iterator<Item = &String> {
        let further = self.compare.iter().filter(|name| **name != self.reference);
        std::iter::once(&self.reference).chain(further)
    }
}

impl ReportRow {
    fn new(row: Finished, figures: Figures) -> Self {
        let Finished { at, outcome, links_before, links_after, command, .. } = row;
        let (error, fidelity) = match outcome {
            Outcome::Done(_) => (None, Vec::new()),
            Outcome::Measured(report) => (None, report.points),
            Outcome::Failed(error) => (Some(error), Vec::new()),
        };
        Self {
            at,
            error,
            figures,
            speedups: Vec::new(),
            loss_difference: None,
            fidelity,
            links_before,
            links_after,
            command,
        }
    }

    /// The mean rate measured before and after the run, in bits a second of data.
    fn measured_rate(&self) -> Option<f64> {
        Mean::of(self.links_before.iter().chain(&self.links_after).map(|link| link.measured as f64))
            .map(|all| all.mean)
    }
}
