//! Where the time of a step goes.

use std::io;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thinwire_train::metrics::StageTimes;

use super::{COLORS, Drawn, FONT, GRID, INK, Plot, about, distinct, draw, file_name, label, settings};
use crate::report::{Report, StageFigures};

const WIDTH: i32 = 900;
const LEFT: i32 = 250;
const RIGHT: i32 = WIDTH - 40;
const TOP: i32 = 96;
const BAR: i32 = 16;
const THIN: i32 = 7;
const PITCH: i32 = 34;

/// A part of a bar: its name, colour and share.
type Part = (&'static str, RGBColor, fn(&StageTimes) -> f64);

/// The computing thread's time; they add up to nearly the step's.
const OWN: [Part; 3] = [
    ("compute", COLORS[2], |times| times.compute),
    ("optimizer", COLORS[1], |times| times.optimizer),
    ("wait", GRID, |times| times.wait),
];
/// Time of the links' threads, at the same time.
const BESIDE: [Part; 3] = [
    ("encode", COLORS[3], |times| times.encode),
    ("send", COLORS[0], |times| times.send),
    ("decode", COLORS[4], |times| times.decode),
];

/// One bar.
struct Bar {
    name: String,
    shares: StageTimes,
}

/// One picture for every link and variant; of several seeds, the first.
pub(super) fn plots(report: &Report) -> io::Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for (link, variant) in distinct(report, |at| (at.link(), at.variant.clone())) {
        let first = |setting: &&str| {
            report.rows.iter().find(|row| {
                row.at.setting == **setting
                    && row.at.link() == link
                    && row.at.variant == variant
                    && row.error.is_none()
            })
        };
        let rows = settings(report).into_iter().filter_map(|setting| first(&setting));
        let bars: Vec<Bar> =
            rows.flat_map(|row| row.figures.stages.iter().map(|stage| bar(&row.at.setting, stage))).collect();
        if bars.is_empty() {
            continue;
        }
        let title = format!("Where a step's time goes{}", about(link.as_ref(), variant.as_ref()));
        let svg = chart(&title, &bars)?;
        let caption = title
            + ". The upper bar is the computing thread's; the thin one below, of the links' threads, overlaps with it, and \
               as a stage has several of them may be longer than the step.";
        plots.push(Plot { name: file_name("time", &[link, variant]), caption, svg });
    }
    Ok(plots)
}

fn bar(setting: &str, stage: &StageFigures) -> Bar {
    Bar { name: format!("{}, stage {}", label(setting), stage.stage), shares: stage.shares }
}

fn chart(title: &str, bars: &[Bar]) -> io::Result<String> {
    let bottom = bars.iter().fold(TOP, |y, _| y + PITCH);
    draw(WIDTH, bottom + 46, |root| {
        let title = title.replace(char::is_control, " ");
        root.draw(&Text::new(title, (14, 12), (FONT, 20).into_font().color(&INK)))?;
        legend(root)?;
        let sum = |bar: &Bar, parts: &[Part]| parts.iter().map(|part| part.2(&bar.shares)).sum::<f64>();
        let longest = bars.iter().map(|bar| sum(bar, &OWN).max(sum(bar, &BESIDE))).fold(1.0, f64::max);
        let x = |share: f64| LEFT + (f64::from(RIGHT - LEFT) * share / longest) as i32;
        let middle = Pos::new(HPos::Center, VPos::Top);
        for percent in (0..=(longest * 100.0) as i32).step_by(25) {
            let at = x(f64::from(percent) / 100.0);
            root.draw(&PathElement::new([(at, TOP - 8), (at, bottom)], GRID.stroke_width(1)))?;
            let style = (FONT, 15).into_text_style(root).color(&INK).pos(middle);
            root.draw(&Text::new(format!("{percent} %"), (at, bottom + 8), style))?;
        }
        for (bar, y) in bars.iter().zip((TOP..).step_by(PITCH as usize)) {
            let style = (FONT, 15).into_text_style(root).color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(bar.name.clone(), (LEFT - 10, y + BAR / 2), style))?;
            for (parts, top, height) in [(&OWN, y, BAR), (&BESIDE, y + BAR + 1, THIN)] {
                let mut done = 0.0;
                for (_, color, share) in parts {
                    let end = done + share(&bar.shares);
                    root.draw(&Rectangle::new([(x(done), top), (x(end), top + height)], color.filled()))?;
                    done = end;
                }
            }
        }
        Ok(())
    })
}

fn legend(root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
    let style = (FONT, 15).into_text_style(root).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (left, (name, color, _)) in (LEFT..).step_by(102).zip(OWN.iter().chain(&BESIDE)) {
        root.draw(&Rectangle::new([(left, 54), (left + 14, 68)], color.filled()))?;
        root.draw(&Text::new(*name, (left + 20, 61), style.clone()))?;
    }
    Ok(())
}
