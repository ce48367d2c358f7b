//! What is measured.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use thinwire_train::config::Bandwidth;

use super::wire::Wire;

/// One way to add up tensors of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    /// Values of a rank's tensor.
    pub(super) values: usize,
    pub(super) wire: Wire,
    pub(super) compensation: Compensation,
}

/// Whether the errors of a call are given back in the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Compensation {
    /// No.
    None,
    /// The correction is added where the call reads its input; the update comes after the call, and has a time of its own.
    Fused,
    /// A pass over the tensor before the call and one after it, both in the call's time.
    Separate,
}

impl Compensation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fused => "fused",
            Self::Separate => "separate",
        }
    }

    /// Numbers that a rank holds for each value: input, output, two averages, the corrected input.
    pub(super) fn numbers_a_value(self) -> u64 {
        match self {
            Self::None => 2,
            Self::Fused => 4,
            Self::Separate => 5,
        }
    }
}

/// The cases of a group of ranks, and how often each is called.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
    /// Calls that are not measured.
    pub(super) warmup: usize,
    pub(super) repeats: usize,
}

impl Plan {
    /// All combinations; only [some wires](Wire::can_be_compensated) go with compensation.
    pub(super) fn new(
        values: &[usize],
        wires: &[Wire],
        compensations: &[Compensation],
        [warmup, repeats]: [usize; 2],
    ) -> Self {
        let mut cases = Vec::new();
        for &values in values {
            for &wire in wires {
                let possible =
                    |kind: &&Compensation| **kind == Compensation::None || wire.can_be_compensated();
                let kinds = compensations.iter().filter(possible);
                cases.extend(kinds.map(|&compensation| Case { values, wire, compensation }));
            }
        }
        Self { cases, warmup, repeats }
    }

    /// The longest time that ranks may need for one case, by far, over links of this rate. More is a hang.
    pub(super) fn patience(&self, rate: Option<Bandwidth>) -> Duration {
        let calls = (self.warmup + self.repeats) as f64;
        let bits = self.cases.iter().map(|case| case.values).max().unwrap_or(0) as f64 * 32.0;
        let rate = rate.map_or(1e9, |rate| rate.rate().bits_per_second() as f64).min(1e9);
        // Both halves of a sum are sent once over each rank's link. Tensors are made and checked besides.
        let seconds = 20.0 * (calls + 2.0) * 2.0 * bits / rate;
        Duration::from_mins(2).saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}
