//! A plan: what a run will be like, for machines to read.

use serde::Serialize;
use thinwire_codec::CodecSpec;

use super::bottleneck::Bottleneck;
use super::machine::Speed;
use super::planner::{Choice, Planner, PlannerError, Prediction};
use super::propose::Proposal;
use super::simulate::DirectionLoad;
use super::{StageMemory, traffic};
use crate::config::{Bandwidth, Config, LayerPlan, StageUnits};
use crate::metrics::Direction;

/// The prediction for a configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Threads that compute on each stage.
    pub threads: usize,
    /// How many times longer a block takes beside others on all cores of this machine; 1 where each stage has a machine.
    pub slowdown: f64,
    /// Seconds until a thread that was asleep has a core beside them; 0 where each stage has a machine.
    pub wake_seconds: f64,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Predictions a second, where every sequence is full.
    pub tokens_per_second: f64,
    /// What holds the step up.
    pub bottleneck: Bottleneck,
    /// The stages in order.
    pub stages: Vec<StagePlan>,
    /// Every direction of every link.
    pub links: Vec<LinkPlan>,
    /// The same run at other rates; empty for one stage.
    pub rates: Vec<RateRow>,
    /// Changes that are worth making; `None` where none were looked for.
    pub proposals: Option<Vec<Proposal>>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StagePlan {
    /// Its units.
    pub units: StageUnits,
    /// Its machine.
    pub machine: String,
    /// Whether its times are measured, or follow from the machine's operations a second.
    pub measured: bool,
    /// Seconds of a micro-batch's forward pass, alone.
    pub forward: f64,
    /// Of its backward pass.
    pub backward: f64,
    /// Of gradient norms, a tied matrix's codec and the optimizer, once a step.
    pub update: f64,
    /// The share of a step in which it computes.
    pub busy: f64,
    /// Bytes it takes.
    pub memory: StageMemory,
    /// Their sum.
    pub total_memory: u64,
    /// Bytes of its machine, where known.
    pub available_memory: Option<u64>,
    /// Bytes that are missing.
    pub lacks: Option<u64>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkPlan {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Activations or gradients.
    pub direction: Direction,
    /// The codec.
    pub codec: CodecSpec,
    /// Bytes of a step's activations or gradients with their headers.
    pub bytes: u64,
    /// Seconds of a step in which it carries bytes; of encoding and decoding; the longest queues, in tensors.
    #[serde(flatten)]
    pub load: DirectionLoad,
    /// The share of a step in which it carries bytes.
    pub busy: f64,
    /// The share in which its sender encodes.
    pub encoding: f64,
    /// The share in which its receiver decodes.
    pub decoding: f64,
}

/// The run with all links at a rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRow {
    /// Bits a second of every direction.
    pub rate: u64,
    /// Tokens a second with every message as f32.
    pub f32: f64,
    /// The same as bf16.
    pub bf16: f64,
    /// The same with the configured codecs.
    pub configured: f64,
    /// What the configured codecs are faster by than f32.
    pub speedup: f64,
    /// What holds the step up with the configured codecs.
    pub bottleneck: Bottleneck,
}

impl Planner {
    /// The plan of `config`, with a row for each of `rates`, and with proposals if `propose` says so.
    ///
    /// # Errors
    /// A codec does not fit, the map is no partition, a unit cannot be measured, or stages have more than one rank.
    pub fn plan(
        &mut self,
        config: &Config,
        rates: &[Bandwidth],
        propose: bool,
    ) -> Result<Plan, PlannerError> {
        let ranks = config.tensor_parallel.ranks;
        if ranks > 1 {
            return Err(PlannerError::Ranks { ranks });
        }
        let map = self.map(config)?;
        let mut choice = Choice { config: config.clone(), map, rate: None };
        choice.config.pipeline.layers = LayerPlan::Manual(choice.map.stages().to_vec());
        let prediction = self.predict(&choice)?;
        let rates = if choice.map.stages().len() > 1 { rates } else { &[] };
        Ok(Plan {
            threads: self.threads,
            slowdown: prediction.timing.hosts.iter().map(|host| host.slowdown).fold(1.0, f64::max),
            wake_seconds: prediction.timing.hosts.iter().map(|host| host.wake).fold(0.0, f64::max),
            step_seconds: prediction.simulated.step,
            tokens_per_second: prediction.tokens_per_second,
            bottleneck: Bottleneck::of(&prediction.timing),
            stages: self.stages(&choice, &prediction),
            links: links(&choice, &prediction)?,
            rates: rates.iter().map(|rate| self.row(&choice, *rate)).collect::<Result<_, _>>()?,
            proposals: propose.then(|| self.propose(&choice, &prediction)).transpose()?,
        })
    }

    fn row(&mut self, choice: &Choice, rate: Bandwidth) -> Result<RateRow, PlannerError> {
        let bits = rate.rate().bits_per_second();
        let at_rate = Choice { rate: Some(bits as f64), ..choice.clone() };
        let raw = |name: &str| {
            let codec: CodecSpec = name.parse().expect("raw codecs parse");
            let mut raw = at_rate.clone();
            let pipeline = &mut raw.config.pipeline;
            (pipeline.forward, pipeline.backward, pipeline.tied) = (codec, codec, codec);
            for boundary in &mut pipeline.boundaries {
                (boundary.forward, boundary.backward) = (None, None);
            }
            raw
        };
        let f32 = self.predict(&raw("f32"))?.tokens_per_second;
        let bf16 = self.predict(&raw("bf16"))?.tokens_per_second;
        let Prediction { timing, tokens_per_second: configured, .. } = self.predict(&at_rate)?;
        let bottleneck = Bottleneck::of(&timing);
        Ok(RateRow { rate: bits, f32, bf16, configured, speedup: configured / f32, bottleneck })
    }

    fn stages(&self, choice: &Choice, prediction: &Prediction) -> Vec<StagePlan> {
        let Prediction { timing, simulated, memory, .. } = prediction;
        let stage = |(stage, units): (usize, &StageUnits)| {
            let (times, machine) = (&timing.stages[stage], &self.machines.machines[stage]);
            StagePlan {
                units: units.clone(),
                machine: machine.name.clone(),
                measured: matches!(machine.speed, Speed::Relative(_)),
                forward: times.forward,
                backward: times.backward,
                update: times.norms + times.decide + times.update,
                busy: simulated.stages[stage] / simulated.step,
                memory: memory[stage],
                total_memory: memory[stage].total(),
                available_memory: machine.memory.map(|bytes| bytes as u64),
                lacks: self.lacks(stage, &memory[stage]),
            }
        };
        choice.map.stages().iter().enumerate().map(stage).collect()
    }
}

fn links(choice: &Choice, prediction: &Prediction) -> Result<Vec<LinkPlan>, PlannerError> {
    let loads = prediction.simulated.links.iter().flatten();
    let step = prediction.simulated.step;
    let traffic = traffic(&choice.config, Some(&choice.map))?;
    let link = |(traffic, load): (super::LinkTraffic, &DirectionLoad)| LinkPlan {
        from: traffic.from,
        to: traffic.to,
        direction: traffic.direction,
        codec: traffic.codec,
        bytes: traffic.bytes,
        load: *load,
        busy: load.send / step,
        encoding: load.encode / step,
        decoding: load.decode / step,
    };
    Ok(traffic.into_iter().zip(loads).map(link).collect())
}
