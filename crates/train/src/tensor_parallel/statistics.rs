//! What ranks have added up, and what it took.

use thinwire_collective::Statistics;

use super::Site;
use crate::metrics::{Direction, SiteReport};

/// What one rank, or several together, did at one site, in all passes.
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
    /// Values that a rank has handed to others, once for each of them.
    pub sent_values: u64,
    /// Bytes they took.
    pub sent_bytes: u64,
    /// `sum x^2` over the values of a rank's summands.
    pub partial_square: f64,
    /// `sum y^2` over the values of the sums.
    pub sum_square: f64,
    /// `sum (y - s)^2` and `sum s^2` over those of the sums whose exact value `s` was computed beside them:
    /// [`TensorGroup::measure_errors`](super::TensorGroup::measure_errors). For sums of corrected summands this is the error
    /// injected by the call, before later ones give it back.
    pub error_square: [f64; 2],
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
            error_square: [0.0; 2],
        }
    }

    /// Counts a call that made `sum` of this rank's `x`.
    pub(super) fn add(&mut self, call: &Call, x: &[f32], sum: &[f32]) {
        let one = Self {
            calls: 1,
            values: x.len() as u64,
            sent_values: call.sent_values,
            sent_bytes: call.sent_bytes,
            partial_square: square(x),
            sum_square: square(sum),
            error_square: call.error_square,
            ..*self
        };
        self.calls += 1;
        self.merge(&one);
    }

    /// Adds what another rank did in the same calls.
    pub fn merge(&mut self, other: &Self) {
        self.values += other.values;
        self.sent_values += other.sent_values;
        self.sent_bytes += other.sent_bytes;
        self.partial_square += other.partial_square;
        self.sum_square += other.sum_square;
        for (square, other) in self.error_square.iter_mut().zip(other.error_square) {
            *square += other;
        }
    }

    /// What a run of which stage `stage` has these ranks tells of it.
    pub(crate) fn report(&self, stage: usize) -> SiteReport {
        let (site, block) = self.site.name();
        SiteReport {
            stage,
            direction: self.direction,
            site: site.to_owned(),
            block,
            calls: self.calls,
            bytes: self.sent_bytes,
            bits_per_element: self.bits_per_element(),
            partial_rms: self.partial_rms(),
            sum_rms: self.sum_rms(),
        }
    }

    /// `sum (y - s)^2 / sum s^2`, the error that was injected; NaN where it was not measured.
    pub fn rel_sq_error(&self) -> f64 {
        self.error_square[0] / self.error_square[1]
    }

    /// Bits that a value took on its way to one other rank; NaN before the first.
    pub fn bits_per_element(&self) -> f64 {
        self.sent_bytes as f64 * 8.0 / self.sent_values as f64
    }

    /// Root of the mean square of the ranks' summands; NaN before the first.
    pub fn partial_rms(&self) -> f64 {
        (self.partial_square / self.values as f64).sqrt()
    }

    /// Root of the mean square of the sums; NaN before the first.
    pub fn sum_rms(&self) -> f64 {
        (self.sum_square / self.values as f64).sqrt()
    }
}

/// What one call took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    sent_values: u64,
    sent_bytes: u64,
    error_square: [f64; 2],
}

impl Call {
    /// That between two looks at what a rank has done.
    pub(super) fn between(before: Statistics, after: Statistics, ranks: usize) -> Self {
        let shared = (after.shared_values - before.shared_values) * (ranks as u64 - 1);
        Self {
            sent_values: after.pushed_values - before.pushed_values + shared,
            sent_bytes: after.sent_bytes - before.sent_bytes,
            error_square: [0.0; 2],
        }
    }

    /// Notes what the sum should have been.
    pub(super) fn compare(&mut self, sum: &[f32], exact: &[f32]) {
        let error: Vec<f32> = sum.iter().zip(exact).map(|(sum, exact)| sum - exact).collect();
        self.error_square = [square(&error), square(exact)];
    }
}

/// `sum x^2`, in lanes: no addition waits for the one before.
fn square(values: &[f32]) -> f64 {
    let mut lanes = [0.0; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(x) * f64::from(x);
        }
    }
    let rest = rest.iter().map(|&x| f64::from(x) * f64::from(x));
    lanes.into_iter().chain(rest).sum()
}
