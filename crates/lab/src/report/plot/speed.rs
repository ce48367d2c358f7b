//! Throughput and speed-up against bandwidth.

use std::io;

use thinwire_train::config::Bandwidth;
use thinwire_train::metrics::text;

use super::axis::Axis;
use super::lines::{Line, picture};
use super::{Plot, about, distinct, file_name, settings};
use crate::report::Report;
use crate::report::compare::Group;
use crate::report::spread::Mean;

/// One picture of each for every variant and latency, where there are several bandwidths.
pub(super) fn plots(report: &Report) -> io::Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for (variant, latency) in distinct(report, |at| (at.variant.clone(), at.latency)) {
        let groups: Vec<&Group> = report
            .groups
            .iter()
            .filter(|group| (&group.at.variant, group.at.latency) == (&variant, latency))
            .collect();
        let rates = rates(&groups);
        if rates.len() < 2 {
            continue;
        }
        let latency = latency.map(|latency| format!("latency {latency}"));
        let place = [variant.clone(), latency.clone()];
        let beside = about(None, variant.as_ref()) + &about(None, latency.as_ref());
        let picture = |name: &str, what: &str, y: &str, figure: &dyn Fn(&Group) -> Option<f64>| {
            let title = format!("{what} against bandwidth{beside}");
            let svg = chart(report, &groups, &rates, &title, y, figure)?;
            let caption = title + ". The axis of bandwidths is logarithmic.";
            io::Result::Ok(Plot { name: file_name(name, &place), caption, svg })
        };
        plots.push(picture("throughput", "Throughput", "tokens/s", &|group| mean(group.tokens_per_second))?);
        for over in report.references() {
            let name = file_name("speedup-over", &[Some(over.clone())]);
            let what = format!("Speed-up over {over}");
            plots.push(picture(&name, &what, "times as fast", &|group| mean(group.speedup(over)))?);
        }
    }
    Ok(plots)
}

fn mean(value: Option<Mean>) -> Option<f64> {
    value.map(|value| value.mean)
}

/// From the slowest on.
fn rates(groups: &[&Group]) -> Vec<Bandwidth> {
    let mut rates: Vec<Bandwidth> = groups.iter().filter_map(|group| group.at.rate).collect();
    rates.sort();
    rates.dedup();
    rates
}

fn chart(
    report: &Report,
    groups: &[&Group],
    rates: &[Bandwidth],
    title: &str,
    y: &str,
    figure: &dyn Fn(&Group) -> Option<f64>,
) -> io::Result<String> {
    let bits = |rate: Bandwidth| rate.rate().bits_per_second() as f64;
    let lines = settings(report).into_iter().enumerate().map(|(color, setting)| {
        let points = rates.iter().map(|&rate| {
            let group =
                groups.iter().find(|group| group.at.setting == setting && group.at.rate == Some(rate));
            (bits(rate).ln(), group.and_then(|group| figure(group)).unwrap_or(f64::NAN))
        });
        Line { name: setting.to_owned(), color, points: points.collect(), dots: true }
    });
    let lines: Vec<Line> = lines.collect();
    let marks: Vec<(f64, String)> =
        rates.iter().map(|&rate| (bits(rate), text::bit_rate(bits(rate)))).collect();
    let x = Axis::logarithmic("bandwidth of each link, each way", &marks);
    let values =
        lines.iter().flat_map(|line| &line.points).map(|point| point.1).filter(|value| value.is_finite());
    let y = Axis::linear(y, 0.0, 1.05 * values.fold(0.0, f64::max));
    picture(title, &x, &y, &lines)
}
