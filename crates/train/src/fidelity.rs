//! How close compression leaves the gradient to what it would be: Assumption 4.4 of the TAH-Quant paper, its Figure 1.
//!
//! A run is trained in this process, to the same bits as by stages with links. At some of its steps the gradient is
//! computed a second time with nothing compressed, from the same parameters and micro-batches.

use serde::{Deserialize, Serialize};
use thinwire_ops::square_norm;

use crate::data::MicroBatch;
use crate::pipeline::{Chain, StepGradient, Wire};
use crate::run::{RunError, Setup};

/// When the gradients are compared, and on how much data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelitySettings {
    /// Steps from one comparison to the next; the first step is always one.
    pub every: u64,
    /// Steps' worth of data, from the step on, over which gradients are averaged for the second figure.
    pub batches: u64,
}

/// The gradients of one step's parameters, compared. `g` is without, `g_hat` with compression.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// The step, counted from 1: the parameters are those before its update.
    pub step: u64,
    /// `|g_hat - g|^2 / |g|^2` on the step's own micro-batches (eq. 9).
    pub step_error: f64,
    /// `|mean g_hat - mean g|^2 / |mean g|^2` over `batches` steps' worth of data (eq. 10).
    pub mean_error: f64,
    /// Steps' worth of data in the means.
    pub batches: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityReport {
    /// The training loss of each step, in nats a token.
    pub losses: Vec<f64>,
    /// In the order of their steps.
    pub points: Vec<Fidelity>,
}

/// Trains the run of `setup` to its end and compares gradients on the way. `tell` hears of each comparison.
///
/// # Errors
/// As a run: data that cannot be read, a codec that cannot be built, values that are not finite.
pub fn measure(
    mut setup: Setup,
    settings: FidelitySettings,
    tell: &mut dyn FnMut(&Fidelity),
) -> Result<FidelityReport, RunError> {
    let mut chain = setup.chain()?;
    let (mut losses, mut points) = (Vec::new(), Vec::new());
    for step in 1..=setup.config.train.steps {
        let batches = data(&mut setup, step)?;
        let gradient = chain.gradient(step, &batches, Wire::Compressed)?;
        losses.push(gradient.loss);
        if step == 1 || step.is_multiple_of(settings.every.max(1)) {
            let point = compare(&mut chain, &mut setup, step, &batches, &gradient, settings.batches.max(1))?;
            tell(&point);
            points.push(point);
        }
        chain.update(step, gradient);
    }
    Ok(FidelityReport { losses, points })
}

/// The comparison at `step`, whose own `compressed` gradient is known.
fn compare(
    chain: &mut Chain,
    setup: &mut Setup,
    step: u64,
    batches: &[MicroBatch],
    compressed: &StepGradient,
    count: u64,
) -> Result<Fidelity, RunError> {
    let exact = chain.gradient(step, batches, Wire::Exact)?;
    let step_error = relative_error(chain, compressed, &exact);
    let mut sums = [compressed.clone(), exact];
    for step in step + 1..step + count {
        let batches = data(setup, step)?;
        for (sum, wire) in sums.iter_mut().zip([Wire::Compressed, Wire::Exact]) {
            add(sum, chain.gradient(step, &batches, wire)?);
        }
    }
    let [compressed, exact] = sums;
    Ok(Fidelity { step, step_error, mean_error: relative_error(chain, &compressed, &exact), batches: count })
}

fn data(setup: &mut Setup, step: u64) -> Result<Vec<MicroBatch>, RunError> {
    setup.batches.step(step - 1).map_err(|source| RunError::Data { key: "data.train", source })
}

fn add(sum: &mut StepGradient, other: StepGradient) {
    for (sum, other) in sum.stages.iter_mut().flatten().zip(other.stages.into_iter().flatten()) {
        *sum = sum.take().zip(other).map(|(sum, other)| sum + other);
    }
}

/// `|g_hat - g|^2 / |g|^2` over all parameters that are trained, a tied matrix counted once.
fn relative_error(chain: &Chain, compressed: &StepGradient, exact: &StepGradient) -> f64 {
    let (mut error, mut signal) = (0.0, 0.0);
    for (at, stage) in chain.stages().iter().enumerate() {
        let (_, second_copy) = stage.compute.part().tied();
        let pairs = compressed.stages[at].iter().zip(&exact.stages[at]).enumerate();
        for (_, pair) in pairs.filter(|&(index, _)| Some(index) != second_copy) {
            if let (Some(g_hat), Some(g)) = pair {
                error += square_norm(&(g_hat.clone() - g.clone()));
                signal += square_norm(g);
            }
        }
    }
    error / signal
}
