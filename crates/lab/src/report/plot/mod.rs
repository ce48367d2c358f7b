//! The report's pictures, as SVG.

mod axis;
mod fidelity;
mod lines;
mod loss;
mod speed;
mod time;

use std::io;

use plotters::prelude::*;

use super::Report;
use crate::experiment::Coordinates;

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    /// Its file's name, without extension.
    pub(super) name: String,
    /// What it shows.
    pub(super) caption: String,
    pub(super) svg: String,
}

type Drawn = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Of the palette of Okabe and Ito, which colour-blind people tell apart, those that are seen on white and on black.
const COLORS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// All pictures for which the report has figures.
pub(super) fn all(report: &Report) -> io::Result<Vec<Plot>> {
    let mut plots = speed::plots(report)?;
    plots.extend(loss::plots(report)?);
    plots.extend(fidelity::plots(report)?);
    plots.extend(time::plots(report)?);
    Ok(plots)
}

/// Draws `picture`, in pixels, on an opaque ground, so that the ink is readable in a dark viewer too.
fn draw(
    width: i32,
    height: i32,
    picture: impl FnOnce(&DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn,
) -> io::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width.cast_unsigned(), height.cast_unsigned()))
            .into_drawing_area();
        root.fill(&WHITE).map_err(io::Error::other)?;
        picture(&root).map_err(io::Error::other)?;
        root.present().map_err(io::Error::other)?;
    }
    Ok(svg)
}

/// The settings of a report, in order; a setting has the same colour in all pictures.
fn settings(report: &Report) -> Vec<&str> {
    let mut settings: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !settings.contains(&&*row.at.setting) {
            settings.push(&row.at.setting);
        }
    }
    settings
}

/// What `key` gives for the report's rows, each once and in order.
fn distinct<T: PartialEq>(report: &Report, key: impl Fn(&Coordinates) -> T) -> Vec<T> {
    let mut found = Vec::new();
    for key in report.rows.iter().map(|row| key(&row.at)) {
        if !found.contains(&key) {
            found.push(key);
        }
    }
    found
}

/// `speed-100mbit-micro-batch-1`: a file's name from what the picture is about.
fn file_name(what: &str, about: &[Option<String>]) -> String {
    let about = about.iter().flatten().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    let words =
        std::iter::once(what.to_owned()).chain(about.filter(|word| !word.is_empty()).map(str::to_lowercase));
    words.collect::<Vec<_>>().join("-")
}

/// `, on a link of 100mbit, micro-batch 1`.
fn about(link: Option<&String>, variant: Option<&String>) -> String {
    let link = link.map(|link| format!(", on links of {link}"));
    let variant = variant.map(|variant| format!(", {variant}"));
    [link, variant].into_iter().flatten().collect()
}

/// A name for the picture: XML cannot hold control characters, escaped or not, and there is only so much room.
fn label(name: &str) -> String {
    const ROOM: usize = 24;
    let name = name.replace(char::is_control, " ");
    if name.chars().count() <= ROOM {
        return name;
    }
    name.chars().take(ROOM - 1).chain(['…']).collect()
}
