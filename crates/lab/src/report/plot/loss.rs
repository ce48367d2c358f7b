//! Loss against steps and against time.

use std::collections::BTreeMap;
use std::io;

use super::axis::Axis;
use super::lines::{Line, picture};
use super::{Plot, about, distinct, file_name, settings};
use crate::report::{LossPoint, Report};

/// Means over the seeds that have the step.
type Curve = Vec<LossPoint>;

/// The steps and bits of a curve's losses.
type Bits = Vec<(u64, u64)>;

/// For every link and variant a picture against time, and against steps unless it is that of an earlier link.
pub(super) fn plots(report: &Report) -> io::Result<Vec<Plot>> {
    let mut plots = Vec::new();
    let mut seen: Vec<(Option<String>, Vec<Bits>)> = Vec::new();
    for (variant, link) in distinct(report, |at| (at.variant.clone(), at.link())) {
        let curves = curves(report, variant.as_ref(), link.as_ref());
        let place = [link.clone(), variant.clone()];
        // The link changes when a step is done and, unless something is amiss, not what it comes to.
        let bits = curves.iter().map(|(_, curve)| curve.iter().map(|p| (p.step, p.loss.to_bits())).collect());
        let drawn = (variant.clone(), bits.collect());
        if !seen.contains(&drawn) {
            let first = seen.iter().all(|(other, _)| *other != variant);
            let link = link.as_ref().filter(|_| !first);
            let caption = format!("Loss against steps{}", about(link, variant.as_ref()));
            let name = file_name("loss-steps", &[link.cloned(), variant.clone()]);
            let svg = chart(report, &curves, &caption, "step", |point| point.step as f64)?;
            plots.push(Plot { name, caption, svg });
            seen.push(drawn);
        }
        if curves.iter().flat_map(|(_, curve)| curve).all(|point| point.seconds.is_none()) {
            continue;
        }
        let caption =
            format!("Loss against wall-clock time of training{}", about(link.as_ref(), variant.as_ref()));
        let svg = chart(report, &curves, &caption, "seconds of training", |point| {
            point.seconds.unwrap_or(f64::NAN)
        })?;
        plots.push(Plot { name: file_name("loss-time", &place), caption, svg });
    }
    Ok(plots)
}

/// A curve for each setting that has one, with the setting's number.
fn curves(report: &Report, variant: Option<&String>, link: Option<&String>) -> Vec<(usize, Curve)> {
    let curve = |setting: &str| -> Curve {
        let own = report.rows.iter().filter(|row| {
            row.at.setting == setting && row.at.variant.as_ref() == variant && row.at.link().as_ref() == link
        });
        let mut steps: BTreeMap<u64, Vec<&LossPoint>> = BTreeMap::new();
        for point in own.flat_map(|row| &row.figures.losses) {
            steps.entry(point.step).or_default().push(point);
        }
        let mean = |(step, points): (u64, Vec<&LossPoint>)| {
            let count = points.len() as f64;
            let over =
                |figure: fn(&LossPoint) -> f64| points.iter().map(|point| figure(point)).sum::<f64>() / count;
            let seconds = points.iter().map(|point| point.seconds).sum::<Option<f64>>();
            LossPoint { step, seconds: seconds.map(|sum| sum / count), loss: over(|point| point.loss) }
        };
        steps.into_iter().map(mean).collect()
    };
    let curves = settings(report).into_iter().map(curve).enumerate();
    curves.filter(|(_, curve)| !curve.is_empty()).collect()
}

fn chart(
    report: &Report,
    curves: &[(usize, Curve)],
    title: &str,
    x: &str,
    place: impl Fn(&LossPoint) -> f64,
) -> io::Result<String> {
    let names = settings(report);
    let lines = curves.iter().map(|(color, curve)| Line {
        name: names[*color].to_owned(),
        color: *color,
        points: curve.iter().map(|point| (place(point), point.loss)).collect(),
        dots: false,
    });
    let lines: Vec<Line> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::linear(x, 0.0, points().map(|point| point.0).fold(0.0, f64::max));
    let y = Axis::around("training loss (nats a token)", points().map(|point| point.1));
    picture(title, &x, &y, &lines)
}
