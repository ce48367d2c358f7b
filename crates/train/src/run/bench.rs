//! A run that is measured and leaves nothing behind.

use std::time::Instant;

use thinwire_ops::profile::{self, Spent};

use super::{Links, RunError, Setup};
use crate::config::{Config, LayerPlan, TensorParallelConfig};
use crate::data::{Cache, Progress};
use crate::metrics::Span;
use crate::pipeline::Engine;

/// A run of one stage, from its configuration.
#[derive(Debug)]
pub struct Bench {
    setup: Setup,
    engine: Engine,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchStep {
    /// Mean loss in nats a token, before the update.
    pub loss: f64,
    /// Targets that count in the loss.
    pub tokens: u64,
    /// Wall-clock seconds, taking the step's data included.
    pub seconds: f64,
}

/// Where the engine's seconds went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Forward passes.
    pub forward: f64,
    /// Backward passes and the sums of their gradients.
    pub backward: f64,
    /// Updates of the parameters.
    pub update: f64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// Threads that computed.
    pub threads: usize,
    /// Steps that were not measured, in front of the others.
    pub warmup: Vec<BenchStep>,
    /// Steps that were.
    pub steps: Vec<BenchStep>,
    /// Of all measured steps.
    pub phases: Phases,
    /// Of all measured steps.
    pub operators: Vec<Spent>,
}

impl Bench {
    /// The run of `config` in one stage of one rank, without evaluations and checkpoints; tokenized data stays in memory. `progress`
    /// hears of that work.
    ///
    /// # Errors
    /// Data, a tokenizer or weights that cannot be used.
    pub fn load(config: Config, progress: &mut dyn FnMut(Progress)) -> Result<Self, RunError> {
        let setup = Setup::load_cached(alone(config), Cache::Never, progress)?;
        let engine = setup.engine(0, Links::default())?;
        Ok(Self { setup, engine })
    }

    /// Values in the parameters; both copies of a tied matrix count.
    pub fn parameters(&self) -> u64 {
        self.engine.state().0.params().iter().map(|p| p.len() as u64).sum()
    }

    /// Trains `warmup` steps, and then `steps` that are measured. `tell` hears of each when it is done.
    ///
    /// # Errors
    /// What ends a run: data that cannot be read any more, values that are not finite.
    pub fn run(
        mut self,
        warmup: u64,
        steps: u64,
        tell: &mut dyn FnMut(&BenchStep),
    ) -> Result<BenchReport, RunError> {
        let mut done = 0;
        let mut train = |count| -> Result<Vec<BenchStep>, RunError> {
            let all = (done..done + count).map(|step| self.step(step).inspect(|step| tell(step)));
            done += count;
            all.collect()
        };
        let warmup = train(warmup)?;
        profile::start();
        let measured = train(steps);
        let operators = profile::take();
        let steps = measured?;
        let first = 1 + warmup.len() as u64;
        let phases = Phases::of(self.engine.take_spans().iter().filter(|span| span.step >= first));
        Ok(BenchReport { threads: rayon::current_num_threads(), warmup, steps, phases, operators })
    }

    /// Step `step`, counted from 0.
    fn step(&mut self, step: u64) -> Result<BenchStep, RunError> {
        let begin = Instant::now();
        let batches = self.setup.batches.step(step);
        let batches = batches.map_err(|source| RunError::Data { key: "data.train", source })?;
        let report = self.engine.step(step + 1, &batches)?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(BenchStep { loss: report.loss, tokens: report.tokens as u64, seconds })
    }
}

impl Phases {
    fn of<'a>(spans: impl Iterator<Item = &'a Span>) -> Self {
        let mut phases = Self::default();
        for span in spans {
            let seconds = span.duration_us as f64 * 1e-6;
            match &*span.name {
                "forward" => phases.forward += seconds,
                "backward" => phases.backward += seconds,
                "optimizer" => phases.update += seconds,
                _ => {}
            }
        }
        phases
    }
}

/// The configuration without what needs other stages, ranks or a disk, and with spans to tell the phases by.
fn alone(mut config: Config) -> Config {
    config.stages.clear();
    config.pipeline.stages = 1;
    config.pipeline.layers = LayerPlan::Auto;
    config.pipeline.boundaries.clear();
    config.tensor_parallel = TensorParallelConfig::default();
    config.data.heldout = None;
    config.metrics.trace = true;
    config
}
