//! Rows as a table of text.

use super::case::Compensation;
use super::row::Row;

const HEADERS: [&str; 11] = [
    "by",
    "wire",
    "compensation",
    "median ms",
    "min ms",
    "GB/s",
    "speed",
    "update ms",
    "link ms",
    "busy",
    "error",
];

/// Columns that are text.
const TEXT: usize = 3;

/// The rows of one place.
pub(super) fn table(rows: &[Row]) -> String {
    let lines: Vec<[String; HEADERS.len()]> =
        std::iter::once(HEADERS.map(str::to_owned)).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    // What no row has is left out.
    let columns: Vec<usize> =
        (0..HEADERS.len()).filter(|&column| lines[1..].iter().any(|line| !line[column].is_empty())).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = columns
            .iter()
            .map(|&column| {
                let (cell, width) = (&line[column], width(column));
                if column < TEXT { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; HEADERS.len()] {
    let milliseconds = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let compensation = match row.compensation {
        Compensation::None => "",
        other => other.name(),
    };
    [
        row.by.to_string(),
        row.label.clone(),
        compensation.to_owned(),
        milliseconds(row.median_seconds),
        milliseconds(row.min_seconds),
        format!("{:.3}", row.bytes_per_second / 1e9),
        optional(row.speed_over_bf16, |speed| format!("{speed:.2}")),
        optional(row.update_seconds, milliseconds),
        optional(row.link_seconds, milliseconds),
        optional(row.busy_cores, |cores| format!("{cores:.2}")),
        optional(row.relative_error, |error| format!("{error:.1e}")),
    ]
}

fn optional(number: Option<f64>, show: impl Fn(f64) -> String) -> String {
    number.map(show).unwrap_or_default()
}
