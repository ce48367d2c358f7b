//! One rank's part of the measurement, whatever carries its messages.

use std::hash::{DefaultHasher, Hasher as _};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use thinwire_codec::CodecSpec;
use thinwire_collective::{Coefficients, CollectiveError, Compensator, Contribution as _, Group};

use super::busy::busy_seconds;
use super::case::{Case, Compensation, Plan};
use super::values::{Distance, fill};
use super::wire::Wire;

/// What one rank found in one case.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Measured {
    /// The case's place in the plan.
    pub(super) case: usize,
    pub(super) rank: usize,
    /// Of every measured call, on this rank.
    pub(super) seconds: Vec<f64>,
    /// Of the updates after them, where those are not in the call.
    pub(super) update_seconds: Vec<f64>,
    /// Seconds of all the machine's cores that were not idle during the measured calls, all together; of rank 0, where the system
    /// tells.
    pub(super) busy_seconds: Option<f64>,
    /// Sent in one call.
    pub(super) sent_bytes: u64,
    /// A hash of the last call's result.
    pub(super) digest: u64,
    /// The largest magnitude that this rank has ever contributed.
    pub(super) largest: f32,
    /// How far the results were from the exact sums; of rank 0.
    pub(super) deviation: Option<Deviation>,
}

/// How far results are from the exact sum.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Deviation {
    /// A value of the first call's result, at most: nothing has been compensated yet.
    pub(super) first: f64,
    /// A value of the last call's result, at most.
    pub(super) last: f64,
    /// The norm of the last one's by that of the sum.
    pub(super) relative: f64,
}

/// Measures all cases in order and `tell`s of each.
pub(super) fn measure<E: From<CollectiveError>>(
    group: &mut Group,
    plan: &Plan,
    mut tell: impl FnMut(Measured) -> Result<(), E>,
) -> Result<(), E> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (index, case) in plan.cases.iter().enumerate() {
        if x.len() != case.values {
            x = vec![0.0; case.values];
            fill(group.rank(), &mut x);
            y = vec![0.0; case.values];
        }
        let measured = measure_case(group, case, plan, &x, &mut y)?;
        tell(Measured { case: index, ..measured })?;
    }
    Ok(())
}

fn measure_case(
    group: &mut Group,
    case: &Case,
    plan: &Plan,
    x: &[f32],
    y: &mut [f32],
) -> Result<Measured, CollectiveError> {
    let (rank, ranks, codec) = (group.rank(), group.ranks(), case.wire.codec());
    let mut way = Way::new(case.compensation, case.values);
    let mut measured = Measured { rank, ..Measured::default() };
    let mut first = None;
    let mut busy = Some(0.0);
    for call in 0..plan.warmup + plan.repeats {
        measured.largest = measured.largest.max(way.largest(x));
        let sent = group.statistics().sent_bytes;
        meet(group)?;
        let handshake = group.statistics().sent_bytes - sent;
        let (busy_before, begin) = (busy_seconds(), Instant::now());
        way.call(group, &codec, x, y)?;
        let seconds = begin.elapsed().as_secs_f64();
        let busy_after = busy_seconds();
        measured.sent_bytes = group.statistics().sent_bytes - sent - handshake;
        let begin = Instant::now();
        let updated = way.update_after(x, y, ranks);
        if call >= plan.warmup {
            measured.seconds.push(seconds);
            measured.update_seconds.extend(updated.then(|| begin.elapsed().as_secs_f64()));
            busy = busy.zip(busy_before.zip(busy_after)).map(|(sum, (before, after))| sum + after - before);
        }
        if call == 0 && rank == 0 {
            first = Some(Distance::of(y, ranks).largest);
        }
    }
    measured.digest = digest(y);
    if let Some(first) = first {
        let Distance { largest: last, relative } = Distance::of(y, ranks);
        measured.deviation = Some(Deviation { first, last, relative });
        measured.busy_seconds = busy;
    }
    Ok(measured)
}

/// Waits for all ranks.
fn meet(group: &mut Group) -> Result<(), CollectiveError> {
    group.all_reduce(&Wire::F32.codec(), &[0.0][..], &mut [0.0])
}

fn digest(y: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for y in y {
        hasher.write_u32(y.to_bits());
    }
    hasher.finish()
}

/// How a call is made.
enum Way {
    Plain,
    Fused(Compensator),
    /// And the corrected tensor.
    Separate(Compensator, Vec<f32>),
}

impl Way {
    fn new(compensation: Compensation, values: usize) -> Self {
        let compensator = || Compensator::new(Coefficients::default(), values);
        match compensation {
            Compensation::None => Self::Plain,
            Compensation::Fused => Self::Fused(compensator()),
            Compensation::Separate => Self::Separate(compensator(), vec![0.0; values]),
        }
    }

    /// What is measured.
    fn call(
        &mut self,
        group: &mut Group,
        codec: &CodecSpec,
        x: &[f32],
        y: &mut [f32],
    ) -> Result<(), CollectiveError> {
        match self {
            Self::Plain => group.all_reduce(codec, x, y),
            Self::Fused(compensator) => group.all_reduce(codec, &compensator.apply(x), y),
            Self::Separate(compensator, corrected) => {
                compensator.apply(x).piece(0..x.len(), corrected);
                group.all_reduce(codec, &corrected[..], y)?;
                compensator.update(x, y, group.ranks());
                Ok(())
            }
        }
    }

    /// Whether there was something left to do after the call.
    fn update_after(&mut self, x: &[f32], y: &[f32], ranks: usize) -> bool {
        let Self::Fused(compensator) = self else { return false };
        compensator.update(x, y, ranks);
        true
    }

    /// The largest magnitude of what the next call will contribute.
    fn largest(&mut self, x: &[f32]) -> f32 {
        let largest = |values: &[f32]| values.iter().fold(0.0, |largest: f32, x| largest.max(x.abs()));
        match self {
            Self::Plain => largest(x),
            Self::Fused(compensator) | Self::Separate(compensator, _) => {
                let (corrected, mut piece) = (compensator.apply(x), [0.0; 4096]);
                let pieces = (0..x.len()).step_by(piece.len()).map(|start| {
                    let values = (x.len() - start).min(piece.len());
                    largest(corrected.piece(start..start + values, &mut piece[..values]))
                });
                pieces.fold(0.0, f32::max)
            }
        }
    }
}
