//! From a configuration and machines to the times of a step.

use std::collections::BTreeMap;
use std::num::NonZero;

use rayon::ThreadPoolBuildError;
use thinwire_codec::{CodecSpec, Shape};
use thinwire_link::{BURST, HEADER_LEN, LinkError};

use super::codec_cost::{CodecCost, codec_cost};
use super::control::control_bytes;
use super::machine::{LinkSpeed, Machine, Machines, Speed};
use super::measure::{Measured, ModelTimes, UnitTimes, Workload, measure_stages};
use super::memory::{BatchShape, StageMemory};
use super::simulate::{DirectionTiming, Host, Simulated, StageTiming, Timing, simulate};
use super::transport_cost::{TransportCost, transport_cost};
use super::{PlanError, TrafficError, available, flops};
use crate::config::{BoundaryCodecs, Config, ConfigError, LayerMap, StageUnits, Unit};
use crate::model::Architecture;
use crate::pipeline::{Action, actions};

/// TLS 1.3 puts at most so many bytes into a record, and adds these: header, type and authentication tag.
const RECORD: u64 = 16 << 10;
const RECORD_OVERHEAD: u64 = 22;

/// Ethernet, IPv4 and TCP with timestamps, for each segment of this many bytes.
const SEGMENT: f64 = 1448.0;
const SEGMENT_OVERHEAD: f64 = 14.0 + 20.0 + 32.0;

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlannerError {
    /// The model cannot be split as asked.
    #[error(transparent)]
    Split(#[from] PlanError),
    /// The layer map is no partition.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A codec that cannot take the tensors.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// There are no threads to measure with.
    #[error("cannot start the threads to measure with")]
    Threads(#[from] ThreadPoolBuildError),
    /// There is no link to measure with.
    #[error("cannot measure what a link takes of this machine")]
    Transport(#[from] LinkError),
    /// A unit is too large to be measured on this machine.
    #[error(
        "{unit} takes {needed} bytes to be measured, this machine has {available}: describe the machines of the run by \
         their `flops` (--machines)"
    )]
    TooLarge {
        /// The unit.
        unit: Unit,
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// What ranks send each other is not simulated.
    #[error(
        "tensor_parallel.ranks = {ranks}: a plan is for stages of one rank, as what ranks send each other is not simulated"
    )]
    Ranks {
        /// Ranks in the configuration.
        ranks: usize,
    },
}

/// What the stages have of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processors {
    /// Threads that compute on each stage.
    pub threads: Option<NonZero<usize>>,
    /// Cores, above 0, where the stages have not all of them, or not alone.
    pub cores: Option<f64>,
}

/// What is decided before a run, and may be varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The configuration; its layer map is the one below.
    pub config: Config,
    /// Who owns what.
    pub map: LayerMap,
    /// Bits a second of every direction of every link, instead of its own.
    pub rate: Option<f64>,
}

/// What a choice comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// How long everything takes.
    pub timing: Timing,
    /// What a step does.
    pub simulated: Simulated,
    /// Memory of each stage.
    pub memory: Vec<StageMemory>,
    /// Predictions a second, where every sequence is full.
    pub tokens_per_second: f64,
}

/// Predicts; what has been measured is kept.
#[derive(Debug)]
pub struct Planner {
    pub(super) arch: Architecture,
    pub(super) machines: Machines,
    /// Whether all stages are on this machine.
    pub(super) shared: bool,
    pub(super) threads: usize,
    cores: f64,
    /// By micro-batch and checkpointing.
    measured: BTreeMap<(usize, bool), Measured>,
    codecs: BTreeMap<(String, [usize; 3]), CodecCost>,
    transport: Option<TransportCost>,
}

impl Planner {
    /// A planner for the model `arch` in `stages` stages, on `machines`, or, if there are none, all on this one. By default
    /// a stage has as many threads as in a local run, which shares out the cores, and on a machine of its own as many as
    /// this one has cores.
    pub fn new(arch: Architecture, stages: usize, machines: Machines, processors: Processors) -> Self {
        let there = std::thread::available_parallelism().map_or(1, NonZero::get);
        let shared = machines.machines.is_empty();
        let sharing = if shared { stages } else { 1 };
        let Processors { threads, cores } = processors;
        let machines =
            if shared { Machines { machines: vec![Machine::this(); stages], ..machines } } else { machines };
        Self {
            arch,
            machines,
            shared,
            threads: threads.map_or_else(|| (there / sharing).max(1), NonZero::get),
            cores: cores.unwrap_or(there as f64),
            measured: BTreeMap::new(),
            codecs: BTreeMap::new(),
            transport: None,
        }
    }

    /// The map of `config`, or for `"auto"` the one that `thinwire train` would choose.
    ///
    /// # Errors
    /// The map is no partition, or a unit cannot be measured.
    pub fn map(&mut self, config: &Config) -> Result<LayerMap, PlannerError> {
        if let Some(map) = config.pipeline.manual_map(self.arch.layers)? {
            return Ok(map);
        }
        Ok(self.times(config, 0)?.split(self.arch.layers, config.pipeline.stages)?)
    }

    /// What `choice` comes to.
    ///
    /// # Errors
    /// A codec does not fit, or a unit cannot be measured.
    pub fn predict(&mut self, choice: &Choice) -> Result<Prediction, PlannerError> {
        let timing = self.timing(choice)?;
        let simulated = simulate(&timing);
        let memory = self.memory(choice, &simulated)?;
        let train = &choice.config.train;
        let tokens = train.sequence as f64 * train.micro_batch as f64 * train.micro_batches as f64;
        Ok(Prediction { tokens_per_second: tokens / simulated.step, timing, simulated, memory })
    }

    /// How many bytes stage `stage` lacks on its machine.
    pub fn lacks(&self, stage: usize, memory: &StageMemory) -> Option<u64> {
        let there = self.machines.machines[stage].memory?;
        let lack = memory.total() as f64 - there;
        (lack > 0.0).then_some(lack as u64)
    }

    /// Bytes that all stages together lack; 0 if the run fits.
    pub(super) fn lack(&self, memory: &[StageMemory]) -> u64 {
        let of_stage = |(stage, memory)| self.lacks(stage, memory).unwrap_or(0);
        memory.iter().enumerate().map(of_stage).fold(0, u64::saturating_add)
    }

    fn timing(&mut self, choice: &Choice) -> Result<Timing, PlannerError> {
        let Choice { config, map, .. } = choice;
        let stages: Vec<StageTiming> =
            (0..map.stages().len()).map(|stage| self.stage(choice, stage)).collect::<Result<_, _>>()?;
        let links = (0..stages.len() - 1).map(|link| self.link(choice, link)).collect::<Result<_, _>>()?;
        let hosts = if self.shared {
            let Measured { slowdown, wake, .. } = self.measure(config)?;
            vec![Host { cores: self.cores, slowdown, wake }]
        } else {
            let host = |machine: &Machine| match machine.speed {
                Speed::Relative(_) => Host { cores: self.cores, slowdown: 1.0, wake: 0.0 },
                // What an accelerator computes does not hold up the codec.
                Speed::Flops { .. } => Host::UNSHARED,
            };
            self.machines.machines.iter().map(host).collect()
        };
        let micro_batches = config.train.micro_batches as u32;
        Ok(Timing { schedule: config.pipeline.schedule, micro_batches, hosts, stages, links })
    }

    fn stage(&mut self, choice: &Choice, stage: usize) -> Result<StageTiming, PlannerError> {
        let Choice { config, map, .. } = choice;
        let times = self.times(config, stage)?;
        let units = map.stages()[stage].iter();
        let UnitTimes { forward, backward, norms, update } =
            units.map(|unit| times.of(unit)).fold(UnitTimes::default(), UnitTimes::plus);
        let (first, last) = (stage == 0, stage + 1 == map.stages().len());
        let tied = match self.arch.tied_shape().filter(|_| !(first && last)) {
            Some(shape) => self.codec(config, config.pipeline.tied, shape)?,
            None => CodecCost::default(),
        };
        Ok(StageTiming {
            host: if self.shared { 0 } else { stage },
            threads: self.threads,
            forward,
            backward,
            norms: norms + if first { tied.encode } else { 0.0 },
            decide: if last { tied.encode + tied.decode } else { 0.0 },
            update: update + if first { tied.decode } else { 0.0 },
        })
    }

    fn link(&mut self, choice: &Choice, link: usize) -> Result<[DirectionTiming; 2], PlannerError> {
        let Choice { config, map, rate } = choice;
        let codecs = config.pipeline.boundary(map.boundaries()[link]);
        let [up, down] = control_bytes(&self.arch, map, link);
        let tied = match self.arch.tied_shape() {
            Some(shape) => self.codec(config, config.pipeline.tied, shape)?.bytes,
            None => 0,
        };
        let wire = self.wire(link, &codecs, *rate);
        let mut direction = |codec, rate: Option<f64>, control: u64| -> Result<_, PlannerError> {
            let cost = self.codec(config, codec, message_shape(config, &self.arch))?;
            let transport = self.transport()?;
            let bytes = cost.bytes as f64;
            let seconds = |payload| rate.map_or(0.0, |rate| 8.0 * wire.bytes(payload) / rate);
            Ok(DirectionTiming {
                encode: cost.encode + bytes * transport.send,
                decode: cost.decode + bytes * transport.receive,
                codec_threads: config.pipeline.codec_threads,
                send: seconds(cost.bytes),
                control: seconds(control + tied),
                latency: wire.latency,
                burst: wire.burst,
            })
        };
        Ok([direction(codecs.forward, wire.rates[0], up)?, direction(codecs.backward, wire.rates[1], down)?])
    }

    /// Link `link`: of the machines' file, or the configuration's own throttle.
    fn wire(&self, link: usize, codecs: &BoundaryCodecs, rate: Option<f64>) -> Wire {
        if let Some(&LinkSpeed { forward, backward, latency }) = self.machines.links.get(link) {
            let rates = [forward, backward].map(|own| Some(rate.unwrap_or(own)));
            return Wire { rates, latency, burst: 0.0, segments: true };
        }
        let own = codecs.bandwidth.map(|bandwidth| bandwidth.rate().bits_per_second() as f64);
        Wire { rates: [rate.or(own); 2], latency: 0.0, burst: BURST.as_secs_f64(), segments: false }
    }

    fn codec(&mut self, config: &Config, spec: CodecSpec, shape: Shape) -> Result<CodecCost, PlannerError> {
        let key = (spec.to_string(), [shape.samples, shape.tokens, shape.channels]);
        if let Some(cost) = self.codecs.get(&key) {
            return Ok(*cost);
        }
        let threads = NonZero::new(config.pipeline.codec_threads).unwrap_or(NonZero::<usize>::MIN);
        let cost = codec_cost(spec, shape, threads)?;
        self.codecs.insert(key, cost);
        Ok(cost)
    }

    fn transport(&mut self) -> Result<TransportCost, PlannerError> {
        if let Some(cost) = self.transport {
            return Ok(cost);
        }
        let cost = transport_cost()?;
        Ok(*self.transport.insert(cost))
    }

    /// Times of the units on the machine of stage `stage`.
    fn times(&mut self, config: &Config, stage: usize) -> Result<ModelTimes, PlannerError> {
        match self.machines.machines[stage].speed {
            Speed::Relative(speed) => {
                let ModelTimes { embed, block, head } = self.measure(config)?.alone;
                let [embed, block, head] = [embed, block, head].map(|times| times.scaled(1.0 / speed));
                Ok(ModelTimes { embed, block, head })
            }
            Speed::Flops { reached, memory } => {
                let [embed, block, head] = [Unit::Embed, Unit::Block(0), Unit::Head]
                    .map(|unit| computed(&self.arch, config, unit, reached, memory));
                Ok(ModelTimes { embed, block, head })
            }
        }
    }

    fn measure(&mut self, config: &Config) -> Result<Measured, PlannerError> {
        let train = &config.train;
        let key = (train.micro_batch, train.gradient_checkpointing);
        if let Some(measured) = self.measured.get(&key) {
            return Ok(*measured);
        }
        let workload = Workload {
            samples: train.micro_batch,
            tokens: train.sequence,
            dtype: train.dtype,
            checkpointing: train.gradient_checkpointing,
            blocks: self.arch.layers.div_ceil(config.pipeline.stages),
        };
        // More than there are cores for, too: threads that take turns drive each other out of the caches.
        let beside = if self.shared { config.pipeline.stages } else { 1 };
        self.check_memory(&workload, beside)?;
        let measured = measure_stages(&self.arch, &workload, self.threads, beside)?;
        self.measured.insert(key, measured);
        Ok(measured)
    }

    fn check_memory(&self, workload: &Workload, beside: usize) -> Result<(), PlannerError> {
        let Some(available) = available::memory() else { return Ok(()) };
        let Workload { samples, tokens, dtype, checkpointing, .. } = *workload;
        let shape = BatchShape { samples, tokens, dtype, checkpointing, in_flight: 1 };
        for (unit, times) in [(Unit::Embed, 1), (Unit::Block(0), beside as u64), (Unit::Head, 1)] {
            let units = alone(unit);
            let needed = StageMemory::of_compute(&self.arch, &units, &shape).total().saturating_mul(times);
            if needed > available {
                return Err(PlannerError::TooLarge { unit, needed, available });
            }
        }
        Ok(())
    }

    /// Where the queues of a step are longest.
    fn memory(&mut self, choice: &Choice, simulated: &Simulated) -> Result<Vec<StageMemory>, PlannerError> {
        let Choice { config, map, .. } = choice;
        let elements = message_shape(config, &self.arch).elements().map_err(TrafficError::from)? as u64;
        let mut memory = Vec::new();
        for (stage, units) in map.stages().iter().enumerate() {
            let shape = batch_shape(config, in_flight(config, stage));
            let mut own = StageMemory::of_compute(&self.arch, units, &shape);
            for (link, side) in [(stage.checked_sub(1), 1), (Some(stage), 0)] {
                let Some((link, loads)) = link.and_then(|link| Some((link, simulated.links.get(link)?)))
                else {
                    continue;
                };
                let codecs = config.pipeline.boundary(map.boundaries()[link]);
                let waiting = loads[side].outgoing + loads[1 - side].incoming;
                own.messages += 4 * elements * waiting as u64;
                for spec in [codecs.forward, codecs.backward] {
                    own.messages += self.codec(config, spec, message_shape(config, &self.arch))?.bytes;
                }
            }
            memory.push(own);
        }
        Ok(memory)
    }
}

/// A link as its bytes see it.
struct Wire {
    /// Bits a second there and back; `None` where nothing holds them.
    rates: [Option<f64>; 2],
    latency: f64,
    burst: f64,
    /// Whether the rate is that of the network's own frames, and not of the bytes handed to it.
    segments: bool,
}

impl Wire {
    /// Bytes that a frame with this payload takes.
    fn bytes(&self, payload: u64) -> f64 {
        let frame = payload + HEADER_LEN as u64;
        let bytes = (frame + RECORD_OVERHEAD * frame.div_ceil(RECORD)) as f64;
        if self.segments { bytes + SEGMENT_OVERHEAD * (bytes / SEGMENT).ceil() } else { bytes }
    }
}

/// A unit's times by its arithmetic; norms and the optimizer by the bytes they move.
fn computed(arch: &Architecture, config: &Config, unit: Unit, reached: f64, memory: f64) -> UnitTimes {
    let train = &config.train;
    let flops = flops(arch, unit, train.micro_batch, train.sequence);
    let again =
        if train.gradient_checkpointing && matches!(unit, Unit::Block(_)) { flops.forward } else { 0.0 };
    let trained = arch.trainable(unit) as f64;
    UnitTimes {
        forward: flops.forward / reached,
        backward: (flops.backward + again) / reached,
        // The gradient is read; then it, the parameter and both moments, of which all but the first are written.
        norms: 4.0 * trained / memory,
        update: 4.0 * (4.0 + 3.0) * trained / memory,
    }
}

fn message_shape(config: &Config, arch: &Architecture) -> Shape {
    Shape::new(config.train.micro_batch, config.train.sequence, arch.hidden)
}

pub(super) fn batch_shape(config: &Config, in_flight: usize) -> BatchShape {
    let train = &config.train;
    BatchShape {
        samples: train.micro_batch,
        tokens: train.sequence,
        dtype: train.dtype,
        checkpointing: train.gradient_checkpointing,
        in_flight,
    }
}

/// Most micro-batches between their passes on a stage.
fn in_flight(config: &Config, stage: usize) -> usize {
    let (schedule, stages) = (config.pipeline.schedule, config.pipeline.stages);
    let all = actions(schedule, stage, stages, config.train.micro_batches as u32);
    let mut now = 0usize;
    all.into_iter().fold(0, |most, action| {
        now = match action {
            Action::Forward(_) => now + 1,
            Action::Backward(_) => now - 1,
        };
        most.max(now)
    })
}

fn alone(unit: Unit) -> StageUnits {
    StageUnits {
        embed: unit == Unit::Embed,
        blocks: if matches!(unit, Unit::Block(_)) { 0..1 } else { 0..0 },
        head: unit == Unit::Head,
    }
}
