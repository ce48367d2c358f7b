//! The picture of a comparison: the loss curves of two runs over their steps, as SVG.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::error::MetricsError;
use super::jsonl::read_records;
use super::record::Record;
use super::recorder::METRICS_FILE;
use super::text;

const SIZE: (u32, u32) = (900, 540);
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Longer curves are drawn as means of neighbouring steps: the picture has no room for more.
const MAX_POINTS: usize = 300;
/// Least distance between the two figures at the curves' ends, in pixels.
const LABEL_HEIGHT: i32 = 20;

/// A line's look. The colours are blue and orange of the Okabe-Ito palette, which colour-blind people tell apart;
/// the widths let the run show on top of a reference that it follows closely.
struct Pen {
    color: RGBColor,
    /// The colour of figures, dark enough to read on white.
    ink: RGBColor,
    width: u32,
}

const REFERENCE: Pen = Pen { color: RGBColor(0xe6, 0x9f, 0x00), ink: RGBColor(0x9a, 0x62, 0x00), width: 5 };
const RUN: Pen = Pen { color: RGBColor(0x00, 0x72, 0xb2), ink: RGBColor(0x00, 0x5a, 0x8c), width: 2 };

/// A run's loss over its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct LossCurve {
    /// The run's name in the legend.
    pub label: String,
    /// Steps, ascending, and their losses in nats a token.
    pub points: Vec<(u64, f64)>,
}

impl LossCurve {
    /// Reads the curve from the metrics in a run's folder.
    ///
    /// # Errors
    ///
    /// As [`read_records`].
    pub fn read(label: &str, run_dir: &Path) -> Result<LossCurve, MetricsError> {
        let records = read_records(&run_dir.join(METRICS_FILE))?;
        let points = records.iter().filter_map(|record| match record {
            Record::Step(step) => Some((step.step, step.loss)),
            Record::Eval(_) => None,
        });
        Ok(LossCurve { label: label.to_owned(), points: points.collect() })
    }

    /// The curve with at most [`MAX_POINTS`] points, and the steps a point stands for. A mean without a single finite
    /// loss is not finite, and leaves a gap.
    fn thinned(&self) -> (Vec<(u64, f64)>, usize) {
        let steps = self.points.len().div_ceil(MAX_POINTS).max(1);
        let mean = |chunk: &[(u64, f64)]| {
            let finite = chunk.iter().map(|point| point.1).filter(|loss| loss.is_finite());
            (chunk[chunk.len() / 2].0, finite.clone().sum::<f64>() / finite.count() as f64)
        };
        (self.points.chunks(steps).map(mean).collect(), steps)
    }

    fn last_finite(&self) -> Result<(u64, f64), MetricsError> {
        let last = self.points.iter().rev().find(|point| point.1.is_finite()).copied();
        last.ok_or_else(|| MetricsError::EmptyCurve { label: self.label.clone() })
    }
}

/// Draws `run` over `reference` into an SVG file.
///
/// # Errors
///
/// [`MetricsError::EmptyCurve`] if one of them has nothing to draw, [`MetricsError::Io`] if the file cannot be
/// written.
pub fn write_loss_curves(path: &Path, run: &LossCurve, reference: &LossCurve) -> Result<(), MetricsError> {
    fs::write(path, loss_curves(run, reference)?).map_err(MetricsError::io("write", path))
}

fn loss_curves(run: &LossCurve, reference: &LossCurve) -> Result<String, MetricsError> {
    let ends = [reference.last_finite()?, run.last_finite()?];
    let mut svg = String::new();
    draw(&mut svg, [(reference, &REFERENCE), (run, &RUN)], ends)
        .map_err(|error| MetricsError::Draw { reason: error.to_string() })?;
    Ok(svg)
}

type Drawn = Result<(), Box<dyn Error + Send + Sync>>;

fn draw(svg: &mut String, curves: [(&LossCurve, &Pen); 2], ends: [(u64, f64); 2]) -> Drawn {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    // Opaque, so that the ink is readable in a dark viewer too.
    root.fill(&WHITE)?;
    draw_legend(&root, curves)?;
    let thinned = curves.map(|(curve, _)| curve.thinned());
    let (steps, losses) = ranges(thinned.iter().flat_map(|(points, _)| points).chain(&ends));
    let mut chart = ChartBuilder::on(&root)
        .margin_top(88)
        .margin_right(76)
        .margin_left(14)
        .margin_bottom(8)
        .x_label_area_size(50)
        .y_label_area_size(60)
        .build_cartesian_2d(steps, losses)?;
    let steps_a_point = thinned.iter().map(|curve| curve.1).max();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style((FONT, 16, &INK))
        .axis_desc_style((FONT, 17, &INK))
        .x_desc(x_description(steps_a_point))
        .y_desc("training loss (nats a token)")
        .x_label_formatter(&|step| text::count(*step))
        .draw()?;
    for ((points, _), (_, pen)) in thinned.iter().zip(curves) {
        for segment in points.split(|point| !point.1.is_finite()) {
            chart.draw_series(LineSeries::new(segment.iter().copied(), pen.color.stroke_width(pen.width)))?;
        }
    }
    draw_ends(&root, curves, ends, ends.map(|end| chart.backend_coord(&end)))?;
    root.present()?;
    Ok(())
}

fn x_description(steps_a_point: Option<usize>) -> String {
    match steps_a_point {
        Some(steps @ 2..) => format!("step (a point is the mean of {steps})"),
        _ => "step".to_owned(),
    }
}

/// A title, and under it a line sample and a name for each curve, the run first.
fn draw_legend(root: &DrawingArea<SVGBackend<'_>, Shift>, curves: [(&LossCurve, &Pen); 2]) -> Drawn {
    root.draw(&Text::new("Training loss, compressed and not", (74, 10), (FONT, 22).into_font().color(&INK)))?;
    for (y, (curve, pen)) in [66, 44].into_iter().zip(curves) {
        // XML cannot hold control characters, escaped or not.
        let label = curve.label.replace(char::is_control, " ");
        let left = Pos::new(HPos::Left, VPos::Center);
        root.draw(&PathElement::new([(74, y), (106, y)], pen.color.stroke_width(pen.width)))?;
        root.draw(&Text::new(label, (114, y), (FONT, 17).into_text_style(root).color(&INK).pos(left)))?;
    }
    Ok(())
}

/// The last loss of each curve, beside its end; figures that would overlap are moved apart.
fn draw_ends(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    curves: [(&LossCurve, &Pen); 2],
    ends: [(u64, f64); 2],
    places: [(i32, i32); 2],
) -> Drawn {
    let [(_, first), (_, second)] = places;
    let overlap = (LABEL_HEIGHT - (first - second).abs()).max(0);
    let shift = if ends[0].1 > ends[1].1 { -overlap } else { overlap };
    let shifts = [shift / 2, shift / 2 - shift];
    for (index, (_, pen)) in curves.into_iter().enumerate() {
        let (x, y) = places[index];
        let style = (FONT, 17, &pen.ink).into_text_style(root).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(format!("{:.4}", ends[index].1), (x + 8, y + shifts[index]), style))?;
    }
    Ok(())
}

/// The axes: all steps, and all finite losses with a margin.
fn ranges<'a>(points: impl Iterator<Item = &'a (u64, f64)>) -> (Range<u64>, Range<f64>) {
    let (mut steps, mut losses) = ((u64::MAX, 0), (f64::INFINITY, f64::NEG_INFINITY));
    for &(step, loss) in points.filter(|point| point.1.is_finite()) {
        steps = (steps.0.min(step), steps.1.max(step));
        losses = (losses.0.min(loss), losses.1.max(loss));
    }
    let margin = ((losses.1 - losses.0) * 0.04).max(0.01);
    (steps.0..steps.1.max(steps.0 + 1), losses.0 - margin..losses.1 + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, losses: impl IntoIterator<Item = f64>) -> LossCurve {
        LossCurve { label: label.to_owned(), points: (1..).zip(losses).collect() }
    }

    #[test]
    fn both_curves_are_drawn_with_names_and_ends() {
        let svg =
            loss_curves(&curve("tah", [5.0, 4.0, 3.25]), &curve("raw:dtype=f32", [5.0, 4.0, 3.125])).unwrap();
        for text in ["tah", "raw:dtype=f32", "3.2500", "3.1250", "step", "training loss (nats a token)"] {
            assert!(svg.lines().any(|line| line == text), "{text} in {svg}");
        }
        assert_eq!(svg.matches("stroke=\"#0072B2\"").count(), 2, "a sample and a curve");
        assert_eq!(svg.matches("stroke=\"#E69F00\"").count(), 2, "a sample and a curve");
    }

    #[test]
    fn labels_are_escaped() {
        let label = "<script>&\"\u{1b}";
        let svg = loss_curves(&curve(label, [1.0]), &curve("b", [1.0])).unwrap();
        assert!(svg.contains("&lt;script&gt;&amp;&quot; "));
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}'));
    }

    #[test]
    fn a_loss_that_is_not_finite_is_a_gap() {
        let svg = loss_curves(&curve("a", [3.0, 2.0, f64::NAN, 2.0, 1.0]), &curve("b", [3.0, 2.0])).unwrap();
        assert_eq!(svg.matches("stroke=\"#0072B2\"").count(), 3, "a sample and two pieces");
        assert!(!svg.contains("NaN"));
        let error = loss_curves(&curve("a", [f64::NAN]), &curve("b", [1.0])).unwrap_err();
        assert!(matches!(error, MetricsError::EmptyCurve { label } if label == "a"));
    }

    #[test]
    fn long_curves_are_thinned_to_means() {
        let (points, steps) = curve("a", (0..900).map(f64::from)).thinned();
        assert_eq!((points.len(), steps), (300, 3));
        assert_eq!(points[..2], [(2, 1.0), (5, 4.0)]);
        let (points, _) = curve("a", (0..900).map(|i| if i % 3 == 0 { f64::NAN } else { 2.0 })).thinned();
        assert!(points.iter().all(|point| point.1 == 2.0), "means of what is finite");
    }

    #[test]
    fn figures_at_the_ends_keep_their_distance() {
        let svg = loss_curves(&curve("a", [5.0, 3.25]), &curve("b", [5.0, 3.251])).unwrap();
        let lines: Vec<_> = svg.lines().collect();
        let height = |figure: &str| -> i32 {
            let at = lines.iter().position(|line| *line == figure).unwrap();
            let (_, rest) = lines[at - 1].split_once(" y=\"").unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        assert_eq!(height("3.2500") - height("3.2510"), LABEL_HEIGHT, "the lower loss stands lower");
    }
}
