//! Where an axis begins, ends and has its marks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// What it shows, and in what.
    pub(super) title: String,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Places and their texts.
    pub(super) marks: Vec<(f64, String)>,
}

impl Axis {
    /// From `low` to `high` with about six marks at round numbers.
    pub(super) fn linear(title: &str, low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (low / step).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let marks = (first..=last).map(|index| {
            let at = index as f64 * step;
            (at, format!("{at:.decimals$}"))
        });
        Self { title: title.to_owned(), low, high, marks: marks.collect() }
    }

    /// The logarithms of positive values, each with its own text as a mark.
    pub(super) fn logarithmic(title: &str, values: &[(f64, String)]) -> Self {
        let marks: Vec<(f64, String)> =
            values.iter().map(|(value, text)| (value.ln(), text.clone())).collect();
        let low = marks.iter().map(|mark| mark.0).fold(f64::INFINITY, f64::min);
        let high = marks.iter().map(|mark| mark.0).fold(f64::NEG_INFINITY, f64::max);
        let margin = ((high - low) * 0.05).max(0.1);
        Self { title: title.to_owned(), low: low - margin, high: high + margin, marks }
    }

    /// All finite `values` with a little around them.
    pub(super) fn around(title: &str, values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let margin = ((high - low) * 0.04).max(0.01);
        Self::linear(title, low - margin, high + margin)
    }
}

/// The library asks for a place's marks here instead of choosing its own.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.marks.iter().map(|mark| mark.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.marks.iter().find(|mark| mark.0 == *value).map(|mark| mark.1.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let texts = |axis: Axis| axis.marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>();
        assert_eq!(texts(Axis::linear("", 0.0, 2400.0)), ["0", "500", "1000", "1500", "2000"]);
        assert_eq!(texts(Axis::linear("", 2.04, 2.31)), ["2.05", "2.10", "2.15", "2.20", "2.25", "2.30"]);
        assert_eq!(texts(Axis::linear("", 3.0, 3.0)), ["3.0", "3.2", "3.4", "3.6", "3.8", "4.0"]);
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let axis = Axis::around("", [1.0, f64::NAN, 3.0, f64::INFINITY].into_iter());
        assert_eq!((axis.low, axis.high), (0.92, 3.08));
    }
}
