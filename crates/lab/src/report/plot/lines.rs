//! A picture of lines, with their names beside them.

use std::io;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::{COLORS, Drawn, FONT, GRID, INK, draw, label};

const WIDTH: i32 = 900;
const HEIGHT: i32 = 480;
/// Room for the names.
const LEGEND: i32 = 230;
/// Longer lines are drawn as means of neighbouring points: the picture has no room for more.
const MAX_POINTS: usize = 300;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which of the colours; after the last they begin anew, with dashes.
    pub(super) color: usize,
    /// In order; a `y` that is not finite is a gap.
    pub(super) points: Vec<(f64, f64)>,
    /// Whether each point has a dot.
    pub(super) dots: bool,
}

impl Line {
    fn stroke(&self) -> ShapeStyle {
        COLORS[self.color % COLORS.len()].stroke_width(2)
    }

    fn is_dashed(&self) -> bool {
        self.color >= COLORS.len()
    }

    /// At most [`MAX_POINTS`] of them.
    fn thinned(&self) -> Vec<(f64, f64)> {
        let each = self.points.len().div_ceil(MAX_POINTS).max(1);
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) =
                values.filter(|value| value.is_finite()).fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
            sum / count
        };
        let chunks = self.points.chunks(each);
        chunks
            .map(|chunk| (mean(&mut chunk.iter().map(|p| p.0)), mean(&mut chunk.iter().map(|p| p.1))))
            .collect()
    }
}

pub(super) fn picture(title: &str, x: &Axis, y: &Axis, lines: &[Line]) -> io::Result<String> {
    draw(WIDTH, HEIGHT, |root| {
        let title = title.replace(char::is_control, " ");
        root.draw(&Text::new(title, (74, 12), (FONT, 20).into_font().color(&INK)))?;
        let mut chart = ChartBuilder::on(root)
            .margin_top(48)
            .margin_right(LEGEND)
            .margin_left(14)
            .margin_bottom(8)
            .x_label_area_size(50)
            .y_label_area_size(60)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style((FONT, 15, &INK))
            .axis_desc_style((FONT, 16, &INK))
            .x_desc(&x.title)
            .y_desc(&y.title)
            .draw()?;
        for line in lines {
            for piece in line.thinned().split(|point| !point.1.is_finite()) {
                if line.is_dashed() {
                    chart.draw_series(DashedLineSeries::new(piece.iter().copied(), 6, 4, line.stroke()))?;
                } else {
                    chart.draw_series(LineSeries::new(piece.iter().copied(), line.stroke()))?;
                }
                if line.dots {
                    let dot = |point: &(f64, f64)| Circle::new(*point, 4, line.stroke().filled());
                    chart.draw_series(piece.iter().map(dot))?;
                }
            }
        }
        legend(root, lines)
    })
}

fn legend(root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>, lines: &[Line]) -> Drawn {
    let left = WIDTH - LEGEND + 14;
    let style = (FONT, 15).into_text_style(root).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (y, line) in (60..).step_by(22).zip(lines) {
        let ends = [(left, y), (left + 26, y)];
        if line.is_dashed() {
            root.draw(&PathElement::new([ends[0], (left + 10, y)], line.stroke()))?;
            root.draw(&PathElement::new([(left + 16, y), ends[1]], line.stroke()))?;
        } else {
            root.draw(&PathElement::new(ends, line.stroke()))?;
        }
        root.draw(&Text::new(label(&line.name), (left + 34, y), style.clone()))?;
    }
    Ok(())
}
