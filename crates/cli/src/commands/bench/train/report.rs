//! What `thinwire bench train` prints.

use std::fmt;

use serde::Serialize;
use thinwire_ops::profile::{Operator, Pass};
use thinwire_train::data::BatchSize;
use thinwire_train::resident;
use thinwire_train::run::{BenchReport, BenchStep};

/// The result; shares are of the time of the measured steps.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    parameters: u64,
    threads: usize,
    sequence: usize,
    micro_batch: usize,
    micro_batches: usize,
    warmup_steps: usize,
    steps: usize,
    /// Of every step, warm-up included, in nats a token.
    losses: Vec<f64>,
    /// Of every measured step.
    step_seconds: Vec<f64>,
    /// Of the median step.
    tokens_per_second: f64,
    /// Of all steps together.
    tokens_per_second_of_all: f64,
    phases: Phases,
    operators: Vec<OperatorTime>,
    /// The share that is in none of the operators.
    rest: f64,
    /// In bytes; `null` where the system does not tell.
    peak_memory: Option<u64>,
}

/// Shares.
#[derive(Debug, Serialize)]
struct Phases {
    forward: f64,
    backward: f64,
    update: f64,
    /// Data, norms of the gradients, agreement on the step.
    other: f64,
}

#[derive(Debug, Serialize)]
struct OperatorTime {
    operator: &'static str,
    pass: &'static str,
    calls: u64,
    seconds: f64,
    share: f64,
}

impl Report {
    pub(super) fn new(size: BatchSize, parameters: u64, measured: &BenchReport) -> Self {
        let BenchReport { threads, warmup, steps, phases, operators } = measured;
        let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
        let tokens: u64 = steps.iter().map(|step| step.tokens).sum();
        let [forward, backward, update] =
            [phases.forward, phases.backward, phases.update].map(|phase| phase / seconds);
        let operators: Vec<OperatorTime> = operators
            .iter()
            .map(|spent| OperatorTime {
                operator: spent.operator.name(),
                pass: spent.pass.name(),
                calls: spent.calls,
                seconds: spent.time.as_secs_f64(),
                share: spent.time.as_secs_f64() / seconds,
            })
            .collect();
        Self {
            parameters,
            threads: *threads,
            sequence: size.sequence,
            micro_batch: size.micro_batch,
            micro_batches: size.micro_batches,
            warmup_steps: warmup.len(),
            steps: steps.len(),
            losses: warmup.iter().chain(steps).map(|step| step.loss).collect(),
            step_seconds: steps.iter().map(|step| step.seconds).collect(),
            tokens_per_second: median(steps.iter().map(rate)),
            tokens_per_second_of_all: tokens as f64 / seconds,
            phases: Phases { forward, backward, update, other: 1.0 - forward - backward - update },
            rest: 1.0 - operators.iter().map(|operator| operator.share).sum::<f64>(),
            operators,
            peak_memory: resident::peak(),
        }
    }

    fn share(&self, operator: Operator, pass: Pass) -> Option<f64> {
        let wanted = (operator.name(), pass.name());
        self.operators.iter().find(|time| (time.operator, time.pass) == wanted).map(|time| time.share)
    }
}

/// Tokens a second.
fn rate(step: &BenchStep) -> f64 {
    step.tokens as f64 / step.seconds
}

/// Of an even number, the mean of both in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    let lower = (values.len() - 1) / 2;
    f64::midpoint(values[lower], values[upper])
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { micro_batch, micro_batches, sequence, threads, .. } = self;
        writeln!(f, "{} parameters, {threads} threads", self.parameters)?;
        writeln!(f, "{micro_batches} micro-batches of {micro_batch} x {sequence} tokens a step")?;
        let (median, all) = (self.tokens_per_second, self.tokens_per_second_of_all);
        writeln!(f, "{median:.1} tokens/s in the median of {} steps, {all:.1} in all", self.steps)?;
        match self.peak_memory {
            Some(bytes) => writeln!(f, "{:.2} GB of memory at the peak", bytes as f64 / 1e9)?,
            None => writeln!(f, "peak memory unknown: this system has no /proc/self/status")?,
        }
        self.write_table(f)
    }
}

impl Report {
    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:<34}", "share of the time, %")?;
        for pass in Pass::ALL {
            write!(f, "{:>10}", pass.name())?;
        }
        for operator in Operator::ALL {
            let shares = Pass::ALL.map(|pass| self.share(operator, pass));
            if shares.iter().all(Option::is_none) {
                continue;
            }
            write!(f, "\n{:<34}", operator.name())?;
            for share in shares {
                let percent = share.map_or_else(String::new, |share| format!("{:.1}", 100.0 * share));
                write!(f, "{percent:>10}")?;
            }
        }
        let rest = format!("{:.1}", 100.0 * self.rest);
        writeln!(f, "\n{:<34}{rest:>10}", "Burn's operations and the rest")?;
        let Phases { forward, backward, update, other } = self.phases;
        write!(f, "{:<34}", "whole passes")?;
        for share in [forward, backward, update] {
            write!(f, "{:>10.1}", 100.0 * share)?;
        }
        write!(f, "\n{:<34}{:>10.1}", "outside them", 100.0 * other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([5.0, 1.0, 900.0].into_iter()), 5.0);
        assert_eq!(median([4.0, 1.0, 2.0, 900.0].into_iter()), 3.0);
    }
}
