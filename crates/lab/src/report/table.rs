//! The report's tables.

use std::fmt::{self, Display};

use thinwire_train::metrics::text;

use super::compare::Group;
use super::spread::Mean;
use super::{Report, ReportRow};
use crate::experiment::Coordinates;

/// A title, and rows of cells; the first columns are names, the others numbers.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Columns that are names.
    pub(super) names: usize,
}

const NONE: &str = "-";

impl Table {
    /// The tables of a report; those without rows are left out.
    pub(super) fn all(report: &Report) -> Vec<Self> {
        let tables = [
            Self::throughput(report),
            Self::loss(report),
            Self::fidelity(report),
            Self::steps(report),
            Self::traffic(report),
            Self::ranks(report),
            Self::time(report),
            Self::links(report),
            Self::failed(report),
        ];
        tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// Speed, by place in the matrix.
    pub(super) fn throughput(report: &Report) -> Self {
        let overs = report.references().map(|over| format!("over {over}"));
        let header = ["tokens/s".to_owned()].into_iter().chain(overs);
        Self::of_groups("Throughput", header, report, |group| {
            let speed = mean(group.tokens_per_second, |speed| format!("{speed:.0}"));
            let factor = |over: &String| mean(group.speedup(over), |factor| format!("{factor:.2}x"));
            std::iter::once(speed).chain(report.references().map(factor)).collect()
        })
    }

    /// Losses, by place in the matrix.
    pub(super) fn loss(report: &Report) -> Self {
        let percent = |share: f64| format!("{:+.2} %", 100.0 * share);
        let header = ["final loss", "against reference", "largest difference", "held-out perplexity"];
        Self::of_groups("Loss", header.map(str::to_owned), report, |group| {
            vec![
                mean(group.final_loss, |loss| format!("{loss:.4}")),
                mean(group.last_loss_difference, percent),
                or_none(group.largest_loss_difference, |share| format!("{:.2} %", 100.0 * share)),
                mean(group.heldout_perplexity, |perplexity| format!("{perplexity:.3}")),
            ]
        })
    }

    /// Gradients compared: one line for each comparison of each row.
    fn fidelity(report: &Report) -> Self {
        let header = ["step", "of the step", "of the mean", "steps in the mean"];
        let rows = report.rows.iter().flat_map(|row| {
            row.fidelity.iter().map(move |point| {
                let error = |error: f64| format!("{error:.5}");
                let errors = [error(point.step_error), error(point.mean_error)];
                let cells = [&[point.step.to_string()], &errors[..], &[point.batches.to_string()]].concat();
                seeded(report, &row.at).into_iter().chain(cells).collect()
            })
        });
        let names = seeded_header(report).len();
        let header = seeded_header(report).into_iter().chain(header.map(str::to_owned)).collect();
        Self { title: "Relative squared error of the gradient", header, rows: rows.collect(), names }
    }

    /// How much the steps of one run differ.
    fn steps(report: &Report) -> Self {
        let header = ["steps", "seconds a step", "tokens/s", "first quartile", "third quartile"];
        Self::of_rows("Steps", header, report, |row| {
            let speed = row.figures.tokens_per_second;
            let whole = |speed: f64| format!("{speed:.0}");
            vec![
                row.figures.losses.len().to_string(),
                or_none(row.figures.step_seconds, |seconds| format!("{seconds:.3}")),
                or_none(speed.map(|speed| speed.median), whole),
                or_none(speed.map(|speed| speed.low), whole),
                or_none(speed.map(|speed| speed.high), whole),
            ]
        })
    }

    fn traffic(report: &Report) -> Self {
        let header = [
            "forward a step",
            "bits/element",
            "link busy",
            "backward a step",
            "bits/element",
            "link busy",
            "remembered",
            "rate",
            "measured",
        ];
        Self::of_rows("Traffic", header, report, |row| {
            let bytes = |bytes: Option<f64>| or_none(bytes, |bytes| text::bytes(bytes as u64));
            let bits = |bits| or_none(bits, |bits| format!("{bits:.3}"));
            let busy = |share| or_none(share, |share: f64| format!("{:.1} %", 100.0 * share));
            let (forward, backward) = (row.figures.forward, row.figures.backward);
            vec![
                bytes(forward.bytes_per_step),
                bits(forward.bits_per_element),
                busy(forward.busy),
                bytes(backward.bytes_per_step),
                bits(backward.bits_per_element),
                busy(backward.busy),
                or_none(row.figures.remembered, text::bytes),
                or_none(row.at.rate, |rate| text::bit_rate(rate.rate().bits_per_second() as f64)),
                or_none(row.measured_rate(), text::bit_rate),
            ]
        })
    }

    /// What ranks sent each other, where stages have more than one.
    fn ranks(report: &Report) -> Self {
        let header = ["forward a step", "bits/element", "backward a step", "bits/element"];
        let mut table = Self::of_rows("Between ranks", header, report, |row| {
            let cells = row.figures.ranks.map(|traffic| {
                let bytes = or_none(traffic.bytes_per_step, |bytes| text::bytes(bytes as u64));
                [bytes, or_none(traffic.bits_per_element, |bits| format!("{bits:.3}"))]
            });
            cells.concat()
        });
        let mut figures = report.rows.iter().flat_map(|row| row.figures.ranks);
        if figures.all(|traffic| traffic.bytes_per_step.is_none()) {
            table.rows.clear();
        }
        table
    }

    /// One line for each stage of each row.
    fn time(report: &Report) -> Self {
        let parts = ["stage", "compute", "optimizer", "wait", "encode", "send", "decode", "peak memory"];
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let rows = report.rows.iter().flat_map(|row| {
            row.figures.stages.iter().map(move |stage| {
                let t = stage.shares;
                let shares = [t.compute, t.optimizer, t.wait, t.encode, t.send, t.decode].map(percent);
                let peak = or_none(stage.peak_memory, text::bytes);
                let cells = std::iter::once(stage.stage.to_string()).chain(shares).chain([peak]);
                seeded(report, &row.at).into_iter().chain(cells).collect()
            })
        });
        let header = seeded_header(report);
        let names = header.len();
        let header = header.into_iter().chain(parts.map(str::to_owned)).collect();
        Self { title: "Where the time goes, and memory", header, rows: rows.collect(), names }
    }

    /// One line for each direction of each link that was measured.
    fn links(report: &Report) -> Self {
        let header = ["link", "expected", "before", "after"];
        let rows = report.rows.iter().flat_map(|row| {
            row.links_before.iter().map(move |before| {
                let after =
                    row.links_after.iter().find(|after| (after.from, after.to) == (before.from, before.to));
                let rate = |rate: u64| text::bit_rate(rate as f64);
                let cells = [
                    format!("{} → {}", before.from, before.to),
                    rate(before.expected),
                    rate(before.measured),
                    or_none(after, |after| rate(after.measured)),
                ];
                seeded(report, &row.at).into_iter().chain(cells).collect()
            })
        });
        let names = seeded_header(report).len() + 1;
        let header = seeded_header(report).into_iter().chain(header.map(str::to_owned)).collect();
        Self { title: "Links, as they were measured", header, rows: rows.collect(), names }
    }

    fn failed(report: &Report) -> Self {
        let rows = report.failed().map(|row| {
            let error = row.error.clone().unwrap_or_default();
            vec![row.at.to_string(), row.figures.losses.len().to_string(), error]
        });
        let header = ["row", "steps", "error"].map(str::to_owned).to_vec();
        Self { title: "Rows that failed", header, rows: rows.collect(), names: 3 }
    }

    fn of_groups(
        title: &'static str,
        header: impl IntoIterator<Item = String>,
        report: &Report,
        cells: impl Fn(&Group) -> Vec<String>,
    ) -> Self {
        let names = names_header(report);
        let count = names.len();
        let rows = report.groups.iter().map(|group| [names_of(report, &group.at), cells(group)].concat());
        Self { title, header: names.into_iter().chain(header).collect(), rows: rows.collect(), names: count }
    }

    fn of_rows<const N: usize>(
        title: &'static str,
        header: [&str; N],
        report: &Report,
        cells: impl Fn(&ReportRow) -> Vec<String>,
    ) -> Self {
        let names = seeded_header(report);
        let count = names.len();
        let rows = report.rows.iter().map(|row| [seeded(report, &row.at), cells(row)].concat());
        let header = names.into_iter().chain(header.map(str::to_owned)).collect();
        Self { title, header, rows: rows.collect(), names: count }
    }
}

/// The columns that name a place in the matrix: those axes that the experiment has.
fn names_header(report: &Report) -> Vec<String> {
    let link = report.rows.iter().any(|row| row.at.rate.is_some()).then_some("link");
    let variant = report.rows.iter().any(|row| row.at.variant.is_some()).then_some("variant");
    [link, variant, Some("setting")].into_iter().flatten().map(str::to_owned).collect()
}

fn names_of(report: &Report, at: &Coordinates) -> Vec<String> {
    let own = |column: &String| match &**column {
        "link" => at.link().unwrap_or_default(),
        "variant" => at.variant.clone().unwrap_or_default(),
        _ => at.setting.clone(),
    };
    names_header(report).iter().map(own).collect()
}

fn seeded_header(report: &Report) -> Vec<String> {
    let mut header = names_header(report);
    header.push("seed".to_owned());
    header
}

fn seeded(report: &Report, at: &Coordinates) -> Vec<String> {
    let mut names = names_of(report, at);
    names.push(at.seed.to_string());
    names
}

fn or_none<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), format)
}

/// With its deviation, where there are several seeds.
fn mean(value: Option<Mean>, format: impl Fn(f64) -> String) -> String {
    or_none(value, |value| match value.deviation {
        Some(deviation) => format!("{} ± {}", format(value.mean), format(deviation).trim_start_matches('+')),
        None => format(value.mean),
    })
}

/// As plain text.
impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        writeln!(f, "{}", self.title)?;
        for row in lines() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                if column < self.names {
                    write!(f, "{gap}{cell:<width$}")?;
                } else {
                    write!(f, "{gap}{cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
