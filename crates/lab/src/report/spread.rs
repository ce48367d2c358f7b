//! What many values come to.

use serde::Serialize;

/// The middle of some values and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quartiles {
    /// A quarter of the values is below.
    pub low: f64,
    /// Half is below.
    pub median: f64,
    /// A quarter is above.
    pub high: f64,
}

impl Quartiles {
    /// `None` of no values. Between two values they are interpolated.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let [below, above] = [place.floor(), place.ceil()].map(|index| sorted[index as usize]);
            below + (above - below) * place.fract()
        };
        Some(Self { low: at(0.25), median: at(0.5), high: at(0.75) })
    }
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a sample (over `n - 1`); `None` of a single value.
    pub deviation: Option<f64>,
}

impl Mean {
    /// `None` of no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, deviation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let quartiles = Quartiles::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(quartiles, Quartiles { low: 1.75, median: 2.5, high: 3.25 });
        assert_eq!(Quartiles::of([7.0]).unwrap(), Quartiles { low: 7.0, median: 7.0, high: 7.0 });
        assert_eq!(Quartiles::of([]), None);
    }

    #[test]
    fn one_value_has_no_deviation() {
        assert_eq!(Mean::of([3.0]), Some(Mean { mean: 3.0, deviation: None }));
        assert_eq!(Mean::of([1.0, 3.0]), Some(Mean { mean: 2.0, deviation: Some(2.0_f64.sqrt()) }));
        assert_eq!(Mean::of([]), None);
    }
}
