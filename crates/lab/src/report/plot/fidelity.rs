//! How far gradients are from what they would be without compression.

use std::io;
use std::slice;

use thinwire_train::fidelity::Fidelity;

use super::axis::Axis;
use super::lines::{Line, picture};
use super::{Plot, about, distinct, file_name, settings};
use crate::report::{Report, ReportRow};

/// A picture's name, what it shows, and the figure.
type Figure = (&'static str, &'static str, fn(&Fidelity) -> f64);

/// For every variant the error of single steps, and that of means over many, where gradients were compared. Of several seeds
/// the first is drawn; settings without an error are left out.
pub(super) fn plots(report: &Report) -> io::Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for variant in distinct(report, |at| at.variant.clone()) {
        let rows: Vec<(usize, &ReportRow)> = settings(report)
            .into_iter()
            .enumerate()
            .filter_map(|(color, setting)| {
                let own = |row: &&ReportRow| row.at.setting == setting && row.at.variant == variant;
                let row = report.rows.iter().filter(own).find(|row| !row.fidelity.is_empty())?;
                row.fidelity.iter().any(|point| point.step_error > 0.0).then_some((color, row))
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let figures: [Figure; 2] = [
            ("gradient-step", "Relative squared error of a step's gradient", |point| point.step_error),
            ("gradient-mean", "Relative squared error of the mean gradient over many steps", |point| {
                point.mean_error
            }),
        ];
        for (name, what, error) in figures {
            let caption = format!("{what}{}", about(None, variant.as_ref()));
            let svg = chart(&rows, &caption, error)?;
            plots.push(Plot { name: file_name(name, slice::from_ref(&variant)), caption, svg });
        }
    }
    Ok(plots)
}

fn chart(rows: &[(usize, &ReportRow)], title: &str, error: fn(&Fidelity) -> f64) -> io::Result<String> {
    let lines = rows.iter().map(|&(color, row)| Line {
        name: row.at.setting.clone(),
        color,
        points: row.fidelity.iter().map(|point| (point.step as f64, error(point))).collect(),
        dots: true,
    });
    let lines: Vec<Line> = lines.collect();
    let most = |value: fn(&(f64, f64)) -> f64| {
        let finite = lines.iter().flat_map(|line| &line.points).map(value).filter(|value| value.is_finite());
        finite.fold(0.0, f64::max)
    };
    let x = Axis::linear("step", 0.0, most(|point| point.0));
    let y = Axis::linear("|ĝ - g|² / |g|²", 0.0, 1.05 * most(|point| point.1));
    picture(title, &x, &y, &lines)
}
