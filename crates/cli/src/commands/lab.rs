//! `thinwire lab`: an experiment of many runs, and its report.

mod matrix;
mod session;

use std::env;
use std::path::PathBuf;

use clap::Args;
use thinwire_lab::experiment::{Experiment, OnFailure, Row};
use thinwire_lab::folder::{Finished, LabFolder, Outcome, steps};
use thinwire_lab::report::{Figures, Report};
use thinwire_train::metrics::text;

use self::matrix::Matrix;
use self::session::Session;
use crate::error::{CommandError, say};
use crate::output::Output;
use crate::signals::Signals;
use crate::stopped::Stopped;

/// Run an experiment: a matrix of settings over throttled links, and a report of it.
///
/// Every stage of a run is a process on a machine of its own, a network namespace, with links of the rate asked for. That
/// needs Linux and root; an experiment without links of its own needs neither.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// The experiment.
    experiment: PathBuf,
    /// Change one setting of every run, such as train.steps=100; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Keep the rows that are done and unchanged.
    #[arg(long)]
    resume: bool,
    /// Replace the rows of an earlier experiment in the folder.
    #[arg(long, conflicts_with = "resume")]
    overwrite: bool,
    /// Only the rows with this text in their names, such as "100mbit" or "f32 / seed 1".
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    row: String,
    /// Check everything and print the matrix; run nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Lab {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let signals = Signals::watch()?;
        let experiment = Experiment::load(&self.experiment)?;
        let rows = experiment.rows_like(&self.row, &self.overrides)?;
        rows.iter().try_for_each(Row::require_data)?;
        if self.dry_run {
            output.print(&Matrix::new(&rows))?;
            return Ok(());
        }
        let folder = LabFolder::claim(&experiment.lab.dir, self.resume, self.overwrite)?;
        Report::remove(folder.path())?;
        let finished = self.run_rows(&experiment, &folder, &rows, &signals)?;
        let rows = rows.iter().zip(finished).map(|(row, finished)| {
            let rate = finished.links_before.first().map(|link| link.expected);
            let of_run = |report| Ok(Figures::of(&steps(row)?, report, rate, experiment.lab.warmup));
            let figures = match &finished.outcome {
                Outcome::Done(report) => of_run(Some(report)),
                Outcome::Measured(report) => Ok(Figures::measured(report)),
                Outcome::Failed(_) => of_run(None),
            };
            figures.map(|figures| (finished, figures))
        });
        let rows = rows.collect::<Result<Vec<_>, CommandError>>()?;
        let command: Vec<String> = env::args().skip(1).collect();
        let command = format!("thinwire {}", command.join(" "));
        let report = Report::new(&experiment, rows, env!("CARGO_PKG_VERSION"), &command);
        let page = report.write(folder.path())?;
        output.print(&report)?;
        say(format!("report: {}\n", page.display()));
        match report.failed().count() {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} rows failed; the report says why", report.rows.len()).into()),
        }
    }

    /// Runs what is not done yet.
    fn run_rows(
        &self,
        experiment: &Experiment,
        folder: &LabFolder,
        rows: &[Row],
        signals: &Signals,
    ) -> Result<Vec<Finished>, CommandError> {
        let mut kept = Vec::new();
        for row in rows {
            let earlier = if self.resume { folder.finished(row)? } else { None };
            let same = earlier.filter(|earlier| earlier.is_done_as(row));
            // The same run may be said otherwise.
            kept.push(same.map(|same| Finished { command: row.command.clone(), ..same }));
        }
        if self.overwrite {
            // All of them at once: what is stopped half-way must not be resumed with rows that were to be replaced.
            rows.iter().try_for_each(|row| folder.forget(row))?;
        }
        let known = rows.iter().zip(&kept).filter_map(|(row, kept)| Some((row, kept.as_ref()?)));
        let mut session = Session::new(experiment, signals, known)?;
        let mut finished = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if let Some(earlier) = kept[index].take() {
                finished.push(earlier);
                continue;
            }
            let to_come = 1 + kept[index + 1..].iter().filter(|kept| kept.is_none()).count();
            let left = session.estimate(to_come).map(|seconds| format!(", about {} left", text::duration(seconds)));
            let number = index + 1;
            say(format!("row {number} of {}: {}{}\n", rows.len(), row.at, left.unwrap_or_default()));
            folder.forget(row)?;
            let outcome = session.run(row).map_err(|error| match error.downcast_ref::<Stopped>() {
                Some(stopped) => {
                    let done = finished.len() + kept[index + 1..].iter().flatten().count();
                    Stopped::experiment(stopped.signal, done, rows.len()).into()
                }
                None => error,
            })?;
            folder.keep(row, &outcome, experiment.lab.keep_checkpoints)?;
            if let Outcome::Failed(error) = &outcome.outcome {
                let error = format!("the row {} failed: {error}", row.at);
                match experiment.lab.on_failure {
                    OnFailure::Record => say(error + "\n"),
                    OnFailure::Stop => return Err(error.into()),
                }
            }
            finished.push(outcome);
        }
        Ok(finished)
    }
}
