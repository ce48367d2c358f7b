//! Rows set against each other.

use serde::Serialize;

use super::ReportRow;
use super::figures::Figures;
use super::spread::Mean;
use crate::experiment::Coordinates;

/// How many times as fast as another setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speedup {
    /// The other setting.
    pub over: String,
    /// Tokens a second by the other's.
    pub factor: f64,
}

/// How far losses are from the reference's, as shares of the reference's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossDifference {
    /// The largest of any step, without its sign.
    pub largest: f64,
    /// Of the last step that both have; positive where the loss is above the reference's.
    pub last: f64,
    /// Of the held-out perplexity.
    pub perplexity: Option<f64>,
}

/// The rows of one link, variant and setting, over their seeds. Rows that failed are counted and in nothing else.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The first seed's place in the matrix.
    #[serde(flatten)]
    pub at: Coordinates,
    /// Rows that ended well.
    pub rows: usize,
    /// Rows that failed.
    pub failed: usize,
    /// Of the medians.
    pub tokens_per_second: Option<Mean>,
    /// Of the last step.
    pub final_loss: Option<Mean>,
    /// On held-out text.
    pub heldout_perplexity: Option<Mean>,
    /// Over each reference.
    pub speedups: Vec<GroupSpeedup>,
    /// The largest of all seeds.
    pub largest_loss_difference: Option<f64>,
    /// At the end.
    pub last_loss_difference: Option<Mean>,
}

/// How many times as fast as another setting, over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupSpeedup {
    /// The other setting.
    pub over: String,
    /// Tokens a second by the other's.
    pub factor: Option<Mean>,
}

/// Fills in what depends on other rows.
pub(super) fn relate(rows: &mut [ReportRow], reference: &str, references: &[&String]) {
    let twin = |at: &Coordinates, setting: &str| {
        let twin = Coordinates { setting: setting.to_owned(), ..at.clone() };
        rows.iter().find(|row| row.at == twin && row.error.is_none()).map(|row| &row.figures)
    };
    let related: Vec<_> = rows
        .iter()
        .map(|row| {
            let speed = row.figures.speed().filter(|_| row.error.is_none());
            let speedups = references.iter().filter_map(|over| {
                Some(Speedup { over: (*over).clone(), factor: speed? / twin(&row.at, over)?.speed()? })
            });
            let difference = twin(&row.at, reference).and_then(|other| difference(&row.figures, other));
            (speedups.collect(), difference)
        })
        .collect();
    for (row, related) in rows.iter_mut().zip(related) {
        (row.speedups, row.loss_difference) = related;
    }
}

fn difference(own: &Figures, reference: &Figures) -> Option<LossDifference> {
    let pairs = own.losses.iter().filter_map(|point| {
        let other = reference.losses.iter().find(|other| other.step == point.step)?;
        Some(point.loss / other.loss - 1.0)
    });
    let differences: Vec<f64> = pairs.collect();
    // A loss that is not a number is further away than any.
    let size = |difference: &f64| if difference.is_nan() { f64::INFINITY } else { difference.abs() };
    Some(LossDifference {
        largest: differences.iter().map(size).fold(0.0, f64::max),
        last: *differences.last()?,
        perplexity: own
            .heldout_perplexity
            .zip(reference.heldout_perplexity)
            .map(|(own, other)| own / other - 1.0),
    })
}

/// In the order of the matrix.
pub(super) fn groups(rows: &[ReportRow]) -> Vec<Group> {
    let mut groups: Vec<Vec<&ReportRow>> = Vec::new();
    for row in rows {
        let place = |at: &Coordinates| Coordinates { seed: 0, ..at.clone() };
        match groups.iter_mut().find(|group| place(&group[0].at) == place(&row.at)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().map(|rows| Group::of(rows)).collect()
}

impl Group {
    /// Of at least one row.
    fn of(rows: &[&ReportRow]) -> Self {
        let done: Vec<&&ReportRow> = rows.iter().filter(|row| row.error.is_none()).collect();
        let mean =
            |figure: &dyn Fn(&ReportRow) -> Option<f64>| Mean::of(done.iter().filter_map(|row| figure(row)));
        let overs =
            done.first().map_or(&[][..], |row| &row.speedups).iter().map(|speedup| speedup.over.clone());
        let speedups = overs.map(|over| {
            let factor =
                |row: &ReportRow| row.speedups.iter().find(|one| one.over == over).map(|one| one.factor);
            let factor = mean(&factor);
            GroupSpeedup { over, factor }
        });
        let differences = done.iter().filter_map(|row| row.loss_difference);
        Self {
            at: rows[0].at.clone(),
            rows: done.len(),
            failed: rows.len() - done.len(),
            tokens_per_second: mean(&|row| row.figures.speed()),
            final_loss: mean(&|row| row.figures.final_loss),
            heldout_perplexity: mean(&|row| row.figures.heldout_perplexity),
            speedups: speedups.collect(),
            largest_loss_difference: differences.clone().map(|one| one.largest).reduce(f64::max),
            last_loss_difference: Mean::of(differences.map(|one| one.last)),
        }
    }

    /// Over `setting`, of one mean over the seeds.
    pub(super) fn speedup(&self, setting: &str) -> Option<Mean> {
        self.speedups.iter().find(|speedup| speedup.over == setting).and_then(|speedup| speedup.factor)
    }
}
