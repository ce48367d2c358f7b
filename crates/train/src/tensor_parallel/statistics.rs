//! What ranks have added up, and what it took.

use super::Site;

/// Which way a sum goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Activations.
    Forward,
    /// Gradients.
    Backward,
}

/// What one rank did at one site, in all passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteStatistics {
    /// Where.
    pub site: Site,
    /// Of what.
    pub direction: Direction,
    /// All-reduces.
    pub calls: u64,
    /// Values in them.
    pub values: u64,
    /// Values that this rank has handed to others, once for each of them.
    pub sent_values: u64,
    /// Bytes they took.
    pub sent_bytes: u64,
    /// `sum x^2` over the values of this rank's summands.
    pub partial_square: f64,
    /// `sum y^2` over the values of the sums.
    pub sum_square: f64,
}

impl SiteStatistics {
    pub(super) fn new(site: Site, direction: Direction) -> Self {
        Self {
            site,
            direction,
            calls: 0,
            values: 0,
            sent_values: 0,
            sent_bytes: 0,
            partial_square: 0.0,
            sum_square: 0.0,
        }
    }

    /// Bits that a value took on its way to one other rank; NaN before the first.
    pub fn bits_per_element(&self) -> f64 {
        self.sent_bytes as f64 * 8.0 / self.sent_values as f64
    }

    /// Root of the mean square of this rank's summands; NaN before the first.
    pub fn partial_rms(&self) -> f64 {
        (self.partial_square / self.values as f64).sqrt()
    }

    /// Root of the mean square of the sums; NaN before the first.
    pub fn sum_rms(&self) -> f64 {
        (self.sum_square / self.values as f64).sqrt()
    }
}

/// `sum x^2`.
pub(super) fn square(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
}
