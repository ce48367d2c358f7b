//! What a stage's passes take on this machine, measured as a run computes them: alone, and beside others.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use thinwire_ops::square_norm;

use super::median::median;
use super::partition::{PlanError, partition};
use super::stopwatch::Stopwatch;
use crate::config::{Dtype, LayerMap, OptimizerConfig, StageUnits, Unit};
use crate::data::MicroBatch;
use crate::model::{Architecture, Init, Part};
use crate::optim::AdamW;
use crate::pipeline::{Compute, HostTensor};

/// Rounds of micro-batches and an update: at least so many, and then until the budget is spent.
const ROUNDS: usize = 5;
const BUDGET: Duration = Duration::from_millis(400);

/// Micro-batches of a round: the first one's gradients start a sum, the second one's are added to it.
const MICRO_BATCHES: u32 = 2;

/// Values in the parameters that are built at most to measure several blocks together.
const MOST_PARAMETERS: u64 = 32 << 20;

/// How long a thread sleeps whose waking up is measured: about as long as one that waits for a message.
const NAP: Duration = Duration::from_millis(5);

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Sequences of a micro-batch.
    pub samples: usize,
    /// Tokens of each.
    pub tokens: usize,
    /// What is computed in.
    pub dtype: Dtype,
    /// Whether blocks run twice.
    pub checkpointing: bool,
    /// Blocks of a stage, measured together where memory allows: their weights drive each other out of the caches.
    pub blocks: usize,
}

/// Seconds of a unit, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnitTimes {
    /// A micro-batch's forward pass, for the head with its loss.
    pub forward: f64,
    /// Its backward pass.
    pub backward: f64,
    /// The norms of the step's gradients.
    pub norms: f64,
    /// The optimizer's update.
    pub update: f64,
}

/// Those of every kind of unit. Blocks are all alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelTimes {
    /// The embedding.
    pub embed: UnitTimes,
    /// One block.
    pub block: UnitTimes,
    /// The head.
    pub head: UnitTimes,
}

/// Measured times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// With the machine to itself.
    pub alone: ModelTimes,
    /// How many times longer a block takes beside others like it on all cores.
    pub slowdown: f64,
    /// Seconds until a thread that was asleep has a core beside them.
    pub wake: f64,
}

impl UnitTimes {
    /// All of it by a factor.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let Self { forward, backward, norms, update } = self;
        let [forward, backward, norms, update] = [forward, backward, norms, update].map(|time| time * factor);
        Self { forward, backward, norms, update }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            forward: self.forward + other.forward,
            backward: self.backward + other.backward,
            norms: self.norms + other.norms,
            update: self.update + other.update,
        }
    }

    /// Both passes.
    pub fn passes(self) -> f64 {
        self.forward + self.backward
    }
}

impl ModelTimes {
    /// The map of `layers` blocks in `stages` stages whose slowest one computes least.
    ///
    /// # Errors
    /// There are more stages than units.
    pub fn split(&self, layers: usize, stages: usize) -> Result<LayerMap, PlanError> {
        let seconds: Vec<f64> = StageUnits::whole(layers).iter().map(|unit| self.of(unit).passes()).collect();
        partition(&seconds, stages)
    }

    /// Those of a unit.
    pub fn of(&self, unit: Unit) -> UnitTimes {
        match unit {
            Unit::Embed => self.embed,
            Unit::Block(_) => self.block,
            Unit::Head => self.head,
        }
    }
}

/// Measures the units of `arch` with `threads` threads, and blocks also with `beside` at a time, each with threads of its own.
///
/// # Errors
/// The system gives no threads.
///
/// # Panics
/// Without a sample, token or thread.
pub fn measure_stages(
    arch: &Architecture,
    workload: &Workload,
    threads: usize,
    beside: usize,
) -> Result<Measured, ThreadPoolBuildError> {
    let bench = Bench { arch, workload };
    let per_block = arch.parameters(Unit::Block(0)).max(1);
    let together = workload.blocks.min((MOST_PARAMETERS / per_block) as usize).clamp(1, arch.layers);
    let blocks: Vec<Unit> = (0..together).map(Unit::Block).collect();
    let alone = |units: &[Unit]| Ok(bench.run_beside(units, threads, 1)?.0.remove(0));
    let stage = alone(&blocks)?;
    let alone = ModelTimes {
        embed: alone(&[Unit::Embed])?,
        block: stage.scaled(1.0 / together as f64),
        head: alone(&[Unit::Head])?,
    };
    if beside == 1 {
        return Ok(Measured { alone, slowdown: 1.0, wake: 0.0 });
    }
    let (crowd, wake) = bench.run_beside(&blocks, threads, beside)?;
    let mean = crowd.iter().map(|times| times.passes()).sum::<f64>() / beside as f64;
    Ok(Measured { alone, slowdown: (mean / stage.passes()).max(1.0), wake })
}

struct Bench<'a> {
    arch: &'a Architecture,
    workload: &'a Workload,
}

/// What all measuring threads know of each other: all compute from the first measured round to the last.
struct Crowd {
    ready: Barrier,
    measuring: AtomicUsize,
}

impl Crowd {
    /// Seconds, in the mean, between the time when a thread is to wake up and the time when it does.
    fn wake(&self) -> f64 {
        self.ready.wait();
        let (mut times, mut late) = (0u32, Duration::ZERO);
        while self.measuring.load(Ordering::Relaxed) > 0 {
            let start = Instant::now();
            thread::sleep(NAP);
            late += start.elapsed().saturating_sub(NAP);
            times += 1;
        }
        late.as_secs_f64() / f64::from(times.max(1))
    }
}

impl Bench<'_> {
    /// Measures `units` on `beside` pools of `threads` threads at the same time, and how long it meanwhile takes to wake
    /// up.
    fn run_beside(
        &self,
        units: &[Unit],
        threads: usize,
        beside: usize,
    ) -> Result<(Vec<UnitTimes>, f64), ThreadPoolBuildError> {
        let pool = |_| ThreadPoolBuilder::new().num_threads(threads).build();
        let pools = (0..beside).map(pool).collect::<Result<Vec<ThreadPool>, _>>()?;
        let crowd = Crowd { ready: Barrier::new(beside + 1), measuring: AtomicUsize::new(beside) };
        Ok(thread::scope(|scope| {
            let run = |pool: &'_ ThreadPool| pool.install(|| self.run(units, &crowd));
            let workers: Vec<_> = pools.iter().map(|pool| scope.spawn(move || run(pool))).collect();
            let wake = crowd.wake();
            (workers.into_iter().map(|worker| worker.join().expect("units compute")).collect(), wake)
        }))
    }

    fn run(&self, units: &[Unit], crowd: &Crowd) -> UnitTimes {
        let mut stage = Stage::new(self.arch, units, self.workload);
        stage.round();
        crowd.ready.wait();
        let start = Instant::now();
        let mut rounds = Vec::new();
        while rounds.len() < ROUNDS || start.elapsed() < BUDGET {
            rounds.push(stage.round());
        }
        crowd.measuring.fetch_sub(1, Ordering::Relaxed);
        while crowd.measuring.load(Ordering::Relaxed) > 0 {
            stage.round();
        }
        let middle = |time: fn(&UnitTimes) -> f64| median(rounds.iter().map(time));
        UnitTimes {
            forward: middle(|times| times.forward),
            backward: middle(|times| times.backward),
            norms: middle(|times| times.norms),
            update: middle(|times| times.update),
        }
    }
}

/// Some units, ready to be trained on the same micro-batch again and again.
struct Stage {
    compute: Compute,
    optimizer: AdamW,
    batch: MicroBatch,
    /// What enters, `None` for the embedding.
    entered: Option<HostTensor>,
    /// The gradient of what leaves, `None` for the head.
    upstream: Option<HostTensor>,
}

impl Stage {
    fn new(arch: &Architecture, units: &[Unit], workload: &Workload) -> Self {
        let Workload { samples, tokens, dtype, checkpointing, .. } = *workload;
        let device = Device::flex();
        let part = Part::new(arch, units, 0, &device).in_dtype(dtype);
        let hidden = |name| {
            let shape = [samples, tokens, arch.hidden];
            HostTensor { shape, values: Init::Normal(1.0).values(0, name, shape.iter().product()) }
        };
        let ids: Vec<u32> = (0..samples * tokens).map(|i| (i * 7919 % arch.vocab) as u32).collect();
        let batch = MicroBatch {
            samples,
            tokens,
            inputs: ids.clone(),
            targets: ids,
            mask: None,
            ids: (0..samples as u64).collect(),
            tag: 0,
        };
        let entered = (!part.has_embedding()).then(|| hidden("entered"));
        let upstream = (!part.has_head()).then(|| hidden("upstream"));
        let optimizer = AdamW::new(&OptimizerConfig::default(), part.params().len());
        let compute = Compute::new(part, device).checkpointing(checkpointing);
        Self { compute, optimizer, batch, entered, upstream }
    }

    /// Some micro-batches and an update; times of one of them.
    fn round(&mut self) -> UnitTimes {
        let mut times = UnitTimes::default();
        for index in 0..MICRO_BATCHES {
            let (entered, upstream) = (self.entered.clone(), self.upstream.clone());
            let weight = 1.0 / self.batch.targets.len() as f32;
            let stopwatch = Stopwatch::start();
            drop(self.compute.forward(index, &self.batch, entered, weight));
            times.forward += stopwatch.seconds() / f64::from(MICRO_BATCHES);
            let stopwatch = Stopwatch::start();
            drop(self.compute.backward(index, upstream));
            times.backward += stopwatch.seconds() / f64::from(MICRO_BATCHES);
        }
        let stopwatch = Stopwatch::start();
        let gradients = self.compute.take_gradients();
        let norm: f64 = gradients.iter().flatten().map(square_norm).sum();
        times.norms = stopwatch.seconds();
        let stopwatch = Stopwatch::start();
        // Clipped to nothing, so that repeated steps leave the weights where they are.
        let clip = if norm.is_finite() { 1e-6 } else { 0.0 };
        self.optimizer.step(self.compute.part_mut().params_mut(), gradients, 1e-6, clip);
        times.update = stopwatch.seconds();
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Family;
    use crate::model::Lora;

    const ARCH: Architecture = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 32,
        heads: 4,
        head_dim: None,
        kv_heads: 2,
        ffn: 64,
        context: 16,
        vocab: 61,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    };

    fn workload() -> Workload {
        Workload { samples: 2, tokens: 9, dtype: Dtype::F32, checkpointing: false, blocks: 2 }
    }

    #[test]
    fn every_unit_is_measured_alone_and_beside_others() {
        for (checkpointing, beside) in [(false, 1), (true, 2)] {
            let workload = Workload { checkpointing, ..workload() };
            let Measured { alone, slowdown, wake } = measure_stages(&ARCH, &workload, 1, beside).unwrap();
            for unit in [Unit::Embed, Unit::Block(2), Unit::Head] {
                let UnitTimes { forward, backward, norms, update } = alone.of(unit);
                assert!([forward, backward, norms, update].iter().all(|time| *time > 0.0), "{unit}");
            }
            assert!(slowdown >= 1.0 && wake >= 0.0 && (beside > 1 || (slowdown, wake) == (1.0, 0.0)));
        }
    }

    #[test]
    fn a_larger_block_takes_longer() {
        let large = Architecture { hidden: 256, ffn: 1024, ..ARCH };
        let block = |arch| measure_stages(arch, &workload(), 1, 1).unwrap().alone.block.passes();
        assert!(block(&large) > block(&ARCH));
    }

    #[test]
    fn adapters_are_measured() {
        let lora = Lora { rank: 2, alpha: 4.0, targets: vec!["q_proj".into(), "up_proj".into()] };
        let adapted = Architecture { lora: Some(lora), ..ARCH };
        let ModelTimes { embed, block, head } = measure_stages(&adapted, &workload(), 1, 1).unwrap().alone;
        assert!(embed.forward > 0.0 && block.backward > 0.0 && head.backward > 0.0);
    }

    #[test]
    fn rounds_leave_nothing_in_flight() {
        let mut stage = Stage::new(&ARCH, &[Unit::Block(0), Unit::Head], &workload());
        stage.round();
        let norms: Vec<_> = stage.compute.take_gradients();
        assert!(norms.iter().all(Option::is_none), "the update has taken all gradients");
    }
}
