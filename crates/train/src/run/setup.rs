//! What every stage derives from the configuration and the texts, the same on each.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use thinwire_codec::{Codec, CodecSpec, DType, RawSettings, Shape};
use thinwire_data::hash::sha256_hex;
use thinwire_link::{Deadlines, Hello, Link, LinkConfig, RunId, Terms};
use thinwire_pretrained::Pretrained;

use super::{Preview, RunError};
use crate::checkpoint::RunFacts;
use crate::config::{
    Bandwidth, BoundaryCodecs, Config, Latency, LayerMap, LayerPlan, Sources, TensorParallelConfig, Unit,
};
use crate::data::{Batches, Cache, DataError, Dataset, Progress, Tokenizer};
use crate::memory::End;
use crate::model::{self, Architecture, Part, Shard};
use crate::optim::{AdamW, RateSchedule};
use crate::pipeline::{
    self, Attachment, Chain, ChainStage, Codecs, Compute, Crossing, Engine, EngineSettings, Team,
};
use crate::plan::tied_gradient_bytes;
use crate::pretrained;
use crate::tensor_parallel::TensorGroup;

/// Longest control message apart from a tied matrix's gradient: norms, file lists.
const CONTROL_BYTES: u64 = 64 << 20;

/// What the deadline for a neighbour grows by, as a share of itself, for each stage behind that neighbour.
const PATIENCE_FOR_EACH: f64 = 0.25;

/// A run, ready to be started on any of its stages.
#[derive(Debug)]
pub struct Setup {
    /// The configuration, checked; epochs have become steps.
    pub config: Config,
    /// The model.
    pub architecture: Architecture,
    /// Who owns what.
    pub map: LayerMap,
    /// The training data, in micro-batches.
    pub batches: Batches,
    /// The held-out data, if there is any.
    pub heldout: Option<Dataset>,
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The model that training starts from.
    pub start: Option<Start>,
}

/// A model that training starts from.
#[derive(Debug)]
pub struct Start {
    /// The model.
    pub model: Pretrained,
    /// Tells it from others.
    pub fingerprint: String,
}

/// A stage's links to its neighbours.
#[derive(Default)]
pub struct Links {
    /// To the stage before.
    pub previous: Option<Link>,
    /// To the stage after.
    pub next: Option<Link>,
}

impl Setup {
    /// Reads the data and checks that everything fits together.
    ///
    /// # Errors
    /// Data or a tokenizer that cannot be used, a vocabulary that is too small, a layer map that is not written out, samples
    /// that a codec is not allowed to remember.
    pub fn load(config: Config) -> Result<Self, RunError> {
        Self::load_with(config, &mut |_| {})
    }

    /// As [`Setup::load`]; `progress` hears of the work when data is tokenized.
    ///
    /// # Errors
    /// As [`Setup::load`].
    pub fn load_with(config: Config, progress: &mut dyn FnMut(Progress)) -> Result<Self, RunError> {
        let own = config.run.dir.join("tokens");
        let configured = config.data.cache.clone();
        let cache = configured.as_deref().map_or(Cache::IfLarge(&own), Cache::Always);
        Self::load_cached(config, cache, progress)
    }

    /// As [`Setup::load_with`], the tokenized data in `cache` whatever the configuration says.
    pub(super) fn load_cached(
        config: Config,
        cache: Cache<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, RunError> {
        let Preview { mut config, architecture, map, tokenizer } = Preview::load(config)?;
        let map = map.ok_or(RunError::NoLayerMap)?;
        let mut open = |key, sources| {
            open(&config, sources, &tokenizer, cache, progress)
                .map_err(|source| RunError::Data { key, source })
        };
        let train = open("data.train", &config.data.train)?;
        let heldout =
            config.data.heldout.as_ref().map(|sources| open("data.heldout", sources)).transpose()?;
        let batches = Batches::new(train, config.train.batch_size(), config.run.seed);
        config.train.count_steps(batches.steps_per_epoch())?;
        let tokenizer = tokenizer.id().to_owned();
        let start = config.model.pretrained.as_deref().map(Start::open).transpose()?;
        let setup = Self { config, architecture, map, batches, heldout, tokenizer, start };
        setup.check_memory()?;
        Ok(setup)
    }

    /// The model whose weights the run does not change, if it trains adapters.
    fn base(&self) -> Option<&Start> {
        self.start.as_ref().filter(|_| self.architecture.lora.is_some())
    }

    /// Stages of the run.
    pub fn stages(&self) -> usize {
        self.map.stages().len()
    }

    /// What both ends of a link must have equal.
    ///
    /// # Errors
    /// Never for the names used here; the type cannot know that.
    pub fn terms(&self, resume: bool) -> Result<Terms, RunError> {
        let Config { run, train, optimizer, eval, pipeline, tensor_parallel, checkpoint, .. } = &self.config;
        let mut terms = Terms::new();
        terms.add("model", json(&self.architecture))?;
        terms.add("model hash", sha256_hex(json(&self.architecture).as_bytes()))?;
        terms.add("weights", self.start.as_ref().map_or("seed", |start| &start.fingerprint))?;
        terms.add("seed", run.seed)?;
        terms.add("layer map", &self.map)?;
        terms.add("schedule", json(&pipeline.schedule))?;
        terms.add("steps", train.steps)?;
        terms.add("sequence", train.sequence)?;
        terms.add("micro-batch", train.micro_batch)?;
        terms.add("micro-batches", train.micro_batches)?;
        terms.add("dtype", train.dtype)?;
        for (boundary, before) in self.map.boundaries().into_iter().enumerate() {
            let codecs = pipeline.boundary(before);
            terms.add(format!("codec {boundary}-{}", boundary + 1), codecs.forward)?;
            terms.add(format!("codec {}-{boundary}", boundary + 1), codecs.backward)?;
        }
        if self.architecture.trains_tied() {
            terms.add("codec tied", pipeline.tied)?;
        }
        terms.add("all-reduce", tensor_parallel.all_reduce)?;
        terms.add("all-reduce of gradients", tensor_parallel.gradients())?;
        terms.add("tokenizer", &self.tokenizer)?;
        let train = self.batches.dataset();
        terms.add("training text", train.content())?;
        terms.add("training data settings", train.settings())?;
        terms.add("held-out text", self.heldout.as_ref().map_or("none", Dataset::content))?;
        terms.add("held-out data settings", self.heldout.as_ref().map_or("none", Dataset::settings))?;
        terms.add("evaluation", json(eval))?;
        terms.add("optimizer", json(optimizer))?;
        terms.add("non-finite", json(&pipeline.non_finite))?;
        terms.add("checkpoint every", checkpoint.every)?;
        terms.add("resume", resume)?;
        Ok(terms)
    }

    /// The run's name in every frame: a fingerprint of the terms, so that stages started by hand agree on it.
    ///
    /// # Errors
    /// As [`Setup::terms`].
    pub fn run_id(&self) -> Result<RunId, RunError> {
        let mut hash = Sha256::new();
        for (name, value) in self.terms(false)?.iter() {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(value.as_bytes());
            hash.update([0]);
        }
        let digest = hash.finalize();
        Ok(RunId(std::array::from_fn(|byte| digest[byte])))
    }

    /// What a checkpoint of the run says about it.
    ///
    /// # Errors
    /// As [`Setup::terms`].
    pub fn facts(&self) -> Result<RunFacts, RunError> {
        let train = &self.config.train;
        Ok(RunFacts {
            run: self.run_id()?.to_string(),
            architecture: self.architecture.clone(),
            base: self.base().map(|base| base.fingerprint.clone()),
            stages: self.map.stages().to_vec(),
            seed: self.config.run.seed,
            tokenizer: self.tokenizer.clone(),
            data: fingerprint(self.batches.dataset()),
            batch: [train.sequence, train.micro_batch, train.micro_batches],
        })
    }

    /// What the link from `stage` to its neighbour `peer` needs.
    ///
    /// # Errors
    /// As [`Setup::terms`].
    pub fn link_config(&self, stage: usize, peer: usize, resume: bool) -> Result<LinkConfig, RunError> {
        let pipeline = &self.config.pipeline;
        let bandwidth = self.boundary(stage.min(peer)).bandwidth;
        Ok(LinkConfig {
            hello: Hello {
                run: self.run_id()?,
                stage: stage as u32,
                peer_stage: peer as u32,
                stages: self.stages() as u32,
                terms: self.terms(resume)?,
            },
            deadlines: Deadlines {
                connect: pipeline.connect_deadline(),
                progress: self.deadline(stage, peer),
                ..Deadlines::default()
            },
            rate: bandwidth.map(Bandwidth::rate),
        })
    }

    /// How long `stage` waits for its neighbour `peer`: longer, the more stages lie behind the neighbour. When a stage
    /// stops, all others soon wait; the one beside it must be the first to give up, as it alone knows whom to blame.
    fn deadline(&self, stage: usize, peer: usize) -> Duration {
        let behind = if peer < stage { peer } else { self.stages() - 1 - peer };
        self.config.pipeline.deadline().mul_f64(1.0 + PATIENCE_FOR_EACH * behind as f64)
    }

    /// What holds between `stage` and the next.
    pub fn boundary(&self, stage: usize) -> BoundaryCodecs {
        self.config.pipeline.boundary(self.map.boundaries()[stage])
    }

    /// Stage `stage` with its links.
    ///
    /// # Errors
    /// A stage that does not exist, a codec that cannot be built, weights that cannot be read, or more ranks than the model can
    /// be shared by.
    pub fn engine(&self, stage: usize, links: Links) -> Result<Engine, RunError> {
        let Config { train, optimizer, pipeline, metrics, .. } = &self.config;
        let team = self.team(stage)?;
        let settings = EngineSettings {
            stage,
            stages: self.stages(),
            schedule: pipeline.schedule,
            rates: RateSchedule::new(optimizer, train.steps),
            clip_norm: optimizer.clip_norm,
            non_finite: pipeline.non_finite,
            trace: metrics.trace,
        };
        let previous = links.previous.map(|link| self.attach(link, stage)).transpose()?;
        let next = links.next.map(|link| self.attach(link, stage)).transpose()?;
        let tied = self.build(pipeline.tied)?;
        Ok(Engine::new(settings, team, tied, previous, next))
    }

    /// All stages in this process, without links.
    ///
    /// # Errors
    /// A codec that cannot be built or that remembers samples, weights that cannot be read, or more than one rank.
    pub fn chain(&self) -> Result<Chain, RunError> {
        let Config { train, optimizer, pipeline, tensor_parallel, .. } = &self.config;
        if tensor_parallel.ranks > 1 {
            return Err(RunError::ChainOfRanks { ranks: tensor_parallel.ranks });
        }
        let share = |stage| self.share(stage, Shard::WHOLE, None);
        let stages = (0..self.stages()).map(share).collect::<Result<_, _>>()?;
        let crossing = |stage| {
            let BoundaryCodecs { forward, backward, .. } = self.boundary(stage);
            if let CodecSpec::Aqsgd(_) = forward {
                return Err(RunError::Remembers { before: self.map.boundaries()[stage], codec: forward });
            }
            Ok(Crossing { forward: self.build(forward)?, backward: self.build(backward)? })
        };
        let crossings =
            (1..self.stages()).map(|after| crossing(after - 1)).collect::<Result<_, RunError>>()?;
        let tied =
            [self.build(pipeline.tied)?, self.build(CodecSpec::Raw(RawSettings { dtype: DType::F32 }))?];
        Ok(Chain::new(
            stages,
            crossings,
            tied,
            RateSchedule::new(optimizer, train.steps),
            optimizer.clip_norm,
        ))
    }

    /// The ranks of stage `stage`, at the start of training.
    fn team(&self, stage: usize) -> Result<Team, RunError> {
        let TensorParallelConfig { ranks, all_reduce, .. } = self.config.tensor_parallel;
        let shards = Shard::all(&self.architecture, ranks)?;
        let deadline = self.config.pipeline.deadline();
        if ranks == 1 {
            return Ok(Team::new(stage, [self.share(stage, Shard::WHOLE, None)?], deadline));
        }
        let groups = pipeline::groups(ranks, deadline)?;
        let gradients = self.config.tensor_parallel.gradients();
        let join = |group| TensorGroup::with_gradients(group, all_reduce, gradients);
        let own = |(shard, group)| self.share(stage, shard, Some(&join(group)));
        let members = shards.into_iter().zip(groups).map(own).collect::<Result<Vec<_>, _>>()?;
        Ok(Team::new(stage, members, deadline))
    }

    /// What `shard` of stage `stage` computes with, at the start of training.
    fn share(
        &self,
        stage: usize,
        shard: Shard,
        group: Option<&Arc<TensorGroup>>,
    ) -> Result<ChainStage, RunError> {
        let stages = self.stages();
        let units = self.map.stages().get(stage).ok_or(RunError::NoSuchStage { stage, stages })?;
        let Config { run, train, optimizer, .. } = &self.config;
        let device = Device::flex();
        let units: Vec<Unit> = units.iter().collect();
        let values = match self.start {
            None => model::Start::Seeded(run.seed),
            Some(_) => model::Start::Adapters(run.seed),
        };
        let mut part = Part::of_shard(&self.architecture, &units, values, shard, &device);
        if let Some(start) = &self.start {
            pretrained::load_into(&mut part, &start.model)?;
        }
        let part = match group {
            Some(group) => part.join(group),
            None => part,
        };
        let part = part.in_dtype(train.dtype);
        let optimizer = AdamW::new(optimizer, part.params().len());
        let compute = Compute::new(part, device).checkpointing(train.gradient_checkpointing);
        Ok(ChainStage { compute, optimizer })
    }

    fn attach(&self, link: Link, stage: usize) -> Result<Attachment, RunError> {
        let peer = link.peer.stage() as usize;
        let BoundaryCodecs { forward, backward, latency, .. } = self.boundary(stage.min(peer));
        let Config { train, eval, pipeline, metrics, .. } = &self.config;
        let samples = train.micro_batch.max(eval.micro_batch);
        let terms = pipeline::Terms {
            stage,
            run: self.run_id()?,
            largest: Shape::new(samples, train.sequence, self.architecture.hidden),
            longest_control: CONTROL_BYTES + tied_gradient_bytes(&self.config, &self.architecture)?,
            non_finite: pipeline.non_finite,
            error_every: metrics.error_every,
            // Enough that no schedule fills it: a full queue on both sides of a link would be a deadlock.
            queue: train.micro_batches + 2,
            deadline: self.deadline(stage, peer),
            latency: latency.map(Latency::duration).unwrap_or_default(),
        };
        let end = if peer > stage { End::Sent } else { End::Received };
        let before = self.map.boundaries()[stage.min(peer)];
        let (activations, memory) = self.activation_codec(forward, before, end)?;
        let gradients = self.build(backward)?;
        let codecs = match end {
            End::Sent => Codecs { outgoing: activations, incoming: gradients, memory },
            End::Received => Codecs { outgoing: gradients, incoming: activations, memory },
        };
        Ok(Attachment { link, codecs, terms })
    }

    /// A codec that remembers nothing.
    pub(super) fn build(&self, codec: CodecSpec) -> Result<Box<dyn Codec>, RunError> {
        Ok(codec.build_with(self.execution()?)?)
    }
}

impl Start {
    fn open(path: &Path) -> Result<Self, RunError> {
        let model = Pretrained::open(path)?;
        let fingerprint = pretrained::fingerprint(path)
            .map_err(|source| RunError::Weights { path: path.into(), source })?;
        Ok(Self { model, fingerprint })
    }
}

fn open(
    config: &Config,
    sources: &Sources,
    tokenizer: &Tokenizer,
    cache: Cache<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Dataset, DataError> {
    let (settings, sequence) = (config.data.settings(), config.train.sequence);
    Dataset::open(&sources.0, &settings, tokenizer, sequence, cache, progress)
}

/// What a checkpoint's place in the data depends on.
fn fingerprint(data: &Dataset) -> String {
    sha256_hex([data.content(), data.settings()].concat().as_bytes())
}

/// The configuration with `pipeline.layers = "auto"` replaced by a map from measured costs on this machine.
///
/// # Errors
/// A tokenizer that cannot be used; more stages than units.
pub fn with_layer_map(mut config: Config) -> Result<Config, RunError> {
    if config.pipeline.layers == LayerPlan::Auto {
        let preview = Preview::load(config.clone())?;
        let map = match preview.map {
            Some(map) => map,
            None => preview.measure()?.1,
        };
        config.pipeline.layers = LayerPlan::Manual(map.stages().to_vec());
    }
    Ok(config)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("settings are plain data")
}
