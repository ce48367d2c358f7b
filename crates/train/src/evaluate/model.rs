//! A trained model on disk.

use std::mem;
use std::num::NonZeroUsize;
use std::path::Path;

use burn::tensor::Device;
use thinwire_codec::CodecSpec;
use thinwire_pretrained::Pretrained;

use super::ranks::Ranks;
use super::sharing::Groups;
use super::{Boundary, EvaluateError, Pipeline, Sharing, base};
use crate::checkpoint;
use crate::config::{Config, Dtype, EvalConfig, LayerMap, StageUnits, TokenizerSource, Unit};
use crate::data::{ChatPrompt, Corpus, DataError, DataSettings, Tokenizer, WindowSize};
use crate::model::{Architecture, Part, Shard, Start};
use crate::pipeline::Compute;
use crate::pretrained::{is_model, load_into, load_shard, load_tokenizer_and_stop, model_tokenizer};
use crate::run::FoundCheckpoint;

/// Tokens in a sequence for a model that no run's configuration speaks of, if its context is as long.
const SEQUENCE: usize = 1024;

/// A trained model, its weights still in their files, and how its run used it.
#[derive(Debug)]
pub struct SavedModel {
    tokenizer: Tokenizer,
    /// Where it is.
    tokenizer_source: TokenizerSource,
    /// What every text begins with.
    first: Option<u32>,
    /// What ends a text.
    stop: Vec<u32>,
    architecture: Architecture,
    source: Source,
}

/// Where the weights are.
#[derive(Debug)]
pub(crate) enum Source {
    /// In the files of a run's checkpoint.
    Checkpoint(Box<FoundCheckpoint>),
    /// Of adapters in the files of a run's checkpoint, of all else in the model that they are for.
    Adapters(Box<FoundCheckpoint>, Box<Pretrained>),
    /// In a model of others.
    Pretrained(Box<Pretrained>),
}

impl Source {
    /// The checkpoint, if there is one.
    fn checkpoint(&self) -> Option<&FoundCheckpoint> {
        match self {
            Self::Checkpoint(found) | Self::Adapters(found, _) => Some(found),
            Self::Pretrained(_) => None,
        }
    }
}

impl SavedModel {
    /// Opens a run's folder (its newest complete checkpoint), a checkpoint's step folder, a Hugging Face folder or a
    /// `.gguf` file. `tokenizer` replaces what came with the model; it must be the one of training, which only
    /// checkpoints can prove.
    ///
    /// # Errors
    /// There is no such model, it is not supported, or there is no tokenizer that fits it.
    pub fn open(path: &Path, tokenizer: Option<&TokenizerSource>) -> Result<Self, EvaluateError> {
        let model = if is_model(path) {
            Self::of_others(Pretrained::open(path)?, tokenizer)?
        } else {
            Self::of_run(FoundCheckpoint::find(path)?, tokenizer)?
        };
        let (vocab, ids) = (model.architecture.vocab, model.tokenizer.vocab_size());
        if vocab < ids {
            return Err(EvaluateError::Vocabulary { vocab, tokenizer: ids });
        }
        Ok(model)
    }

    fn of_run(found: FoundCheckpoint, tokenizer: Option<&TokenizerSource>) -> Result<Self, EvaluateError> {
        let expected = &found.manifest.run.tokenizer;
        let byte = (expected == "byte").then_some(&TokenizerSource::Byte);
        let configured = found.config.as_ref().map(|config| &config.data.tokenizer);
        let source = tokenizer.or(byte).or(configured);
        let source = source.ok_or_else(|| EvaluateError::NoTokenizer { id: expected.clone() })?;
        let (tokenizer, stop) = load_tokenizer_and_stop(source)?;
        if tokenizer.id() != expected {
            let (expected, found) = (expected.clone(), tokenizer.id().to_owned());
            return Err(EvaluateError::OtherTokenizer { expected, found });
        }
        let architecture = found.manifest.run.architecture.clone();
        let tokenizer_source = source.clone();
        let source = match base::open(&found)? {
            None => Source::Checkpoint(Box::new(found)),
            Some(base) => Source::Adapters(Box::new(found), Box::new(base)),
        };
        Ok(Self { tokenizer, tokenizer_source, first: None, stop, architecture, source })
    }

    fn of_others(
        model: Pretrained,
        tokenizer_source: Option<&TokenizerSource>,
    ) -> Result<Self, EvaluateError> {
        let architecture = Architecture::from(model.config());
        architecture.validate()?;
        let (tokenizer, first, stop) = if let Some(source) = tokenizer_source {
            let (tokenizer, stop) = load_tokenizer_and_stop(source)?;
            (tokenizer, None, stop)
        } else {
            let files = model.tokenizer()?;
            let tokenizer = model_tokenizer(&files, model.path())?;
            (tokenizer, files.bos.filter(|_| files.add_bos).map(|bos| bos.id), files.stop)
        };
        let tokenizer_source =
            tokenizer_source.cloned().unwrap_or_else(|| TokenizerSource::File(model.path().into()));
        Ok(Self {
            tokenizer,
            tokenizer_source,
            first,
            stop,
            architecture,
            source: Source::Pretrained(Box::new(model)),
        })
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The token that every text begins with, if the tokenizer of a model of others asks for one.
    pub fn first(&self) -> Option<u32> {
        self.first
    }

    /// The tokens that end a text, as far as the tokenizer's files say.
    pub fn stop(&self) -> &[u32] {
        &self.stop
    }

    /// What the model is.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Where the weights are.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Where the tokenizer is: its file, or the model that it came with.
    pub(crate) fn tokenizer_source(&self) -> &TokenizerSource {
        &self.tokenizer_source
    }

    /// Steps of training, of a checkpoint.
    pub fn step(&self) -> Option<u64> {
        self.source.checkpoint().map(|found| found.manifest.step)
    }

    /// Tokens in a sequence: the run's; for a model of others 1024, or its context if that is shorter; else the model's
    /// context.
    pub fn sequence(&self) -> usize {
        let context = self.architecture.context;
        match (self.config(), &self.source) {
            (Some(run), _) => run.train.sequence,
            (None, Source::Pretrained(_)) => context.min(SEQUENCE),
            (None, _) => context,
        }
    }

    /// Sequences in a micro-batch: as the run evaluates, or the default; one for a model of others, whose logits may
    /// be large.
    pub fn micro_batch(&self) -> usize {
        match (self.config(), &self.source) {
            (Some(run), _) => run.eval.micro_batch,
            (None, Source::Pretrained(_)) => 1,
            (None, _) => EvalConfig::default().micro_batch,
        }
    }

    /// The ranks of the run's stages, and how they add up; a model of others has one.
    pub fn sharing(&self) -> Sharing {
        let run = self.config().map(|run| &run.tensor_parallel);
        let sharing = run.and_then(|run| {
            Some(Sharing { ranks: NonZeroUsize::new(run.ranks)?, all_reduce: run.all_reduce })
        });
        sharing.unwrap_or(Sharing::ALONE)
    }

    /// The boundaries of the run; a model of others has none.
    ///
    /// # Errors
    /// The manifest's stages are no partition of the model.
    pub fn boundaries(&self) -> Result<Vec<usize>, EvaluateError> {
        let Some(found) = self.source.checkpoint() else { return Ok(Vec::new()) };
        let stages = found.manifest.run.stages.clone();
        let map = LayerMap::new(self.architecture.layers, stages).map_err(EvaluateError::LayerMap)?;
        Ok(map.boundaries())
    }

    /// The run's codec of the activations at a boundary.
    ///
    /// # Errors
    /// The run's configuration is not there.
    pub fn codec(&self, before: usize) -> Result<CodecSpec, EvaluateError> {
        let config = self.config().ok_or(EvaluateError::NoCodec)?;
        Ok(config.pipeline.boundary(before).forward)
    }

    /// Reads a text that is to be evaluated in windows of `size`. It begins with the token that the tokenizer of a model
    /// of others asks for, if it does.
    ///
    /// # Errors
    /// The text cannot be read or tokenized or is too short; the sequences are longer than the model's context, or the
    /// stride is 0 or longer than a sequence.
    pub fn read_text(&self, path: &Path, size: WindowSize) -> Result<Corpus, EvaluateError> {
        let (WindowSize { sequence, stride, .. }, context) = (size, self.architecture.context);
        if sequence > context {
            return Err(EvaluateError::Sequence { sequence, context });
        }
        if !(1..=sequence).contains(&stride) {
            return Err(EvaluateError::Stride { stride, sequence });
        }
        Ok(Corpus::load_after(self.first, path, &self.tokenizer)?)
    }

    /// What the model reads before it answers `user`, behind what it is told as `system`: in the run's chat template, or
    /// the model's.
    ///
    /// # Errors
    /// There is no template, or it does not take such messages.
    pub fn chat(&self, system: Option<&str>, user: &[u8]) -> Result<ChatPrompt, DataError> {
        let settings = self.config().map_or_else(DataSettings::default, |run| run.data.settings());
        ChatPrompt::new(&self.tokenizer, &settings, system, user)
    }

    /// Loads the weights into a pipeline on this machine's processor, cut at `boundaries` (in any order).
    ///
    /// # Errors
    /// A boundary that does not exist or is named twice; a file that is not what the manifest says, or cannot be read.
    pub fn load(&self, boundaries: Vec<Boundary>) -> Result<Pipeline, EvaluateError> {
        self.load_shared(boundaries, Sharing::ALONE)
    }

    /// As [`SavedModel::load`], every part shared by ranks.
    ///
    /// # Errors
    /// As there; ranks that cannot share the model.
    pub fn load_shared(
        &self,
        mut boundaries: Vec<Boundary>,
        sharing: Sharing,
    ) -> Result<Pipeline, EvaluateError> {
        boundaries.sort_by_key(Boundary::before);
        let map = cut(self.architecture.layers, &boundaries)?;
        let ranks = Shard::all(&self.architecture, sharing.ranks.get())?;
        let (groups, device) = (Groups::new(sharing)?, Device::flex());
        let share = |units, shard: Shard| {
            let part = self.load_part(units, shard, &device)?;
            let part = match groups.end(shard.rank()) {
                Some(group) => part.join(group),
                None => part,
            };
            Ok(Compute::new(part, device.clone()))
        };
        let part = |units| {
            let shares = ranks.iter().map(|&shard| share(units, shard));
            Ok(Ranks::new(shares.collect::<Result<_, EvaluateError>>()?))
        };
        let parts = map.stages().iter().map(part).collect::<Result<_, EvaluateError>>()?;
        Ok(Pipeline::new(parts, boundaries, groups))
    }

    fn load_part(&self, units: &StageUnits, shard: Shard, device: &Device) -> Result<Part, EvaluateError> {
        let units: Vec<Unit> = units.iter().collect();
        let dtype = self.config().map_or_else(Dtype::default, |run| run.train.dtype);
        let part = match &self.source {
            Source::Checkpoint(found) => {
                checkpoint::load_shard(&found.dir, found.manifest.step, &units, shard, device)?
            }
            Source::Adapters(found, base) => {
                let mut part = Part::of_shard(&self.architecture, &units, Start::Empty, shard, device);
                load_into(&mut part, base)?;
                checkpoint::restore_weights(&found.dir, found.manifest.step, &mut part)?;
                part
            }
            Source::Pretrained(model) => load_shard(model, &units, shard, device)?,
        };
        Ok(part.in_dtype(dtype))
    }

    fn config(&self) -> Option<&Config> {
        self.source.checkpoint().and_then(|found| found.config.as_ref())
    }
}

/// The parts between ascending `boundaries`.
fn cut(layers: usize, boundaries: &[Boundary]) -> Result<LayerMap, EvaluateError> {
    let places: Vec<usize> = boundaries.iter().map(Boundary::before).collect();
    if let Some(&before) = places.iter().find(|&&before| before > layers) {
        return Err(EvaluateError::NoSuchBoundary { before, layers });
    }
    if let Some(pair) = places.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(EvaluateError::DoubledBoundary { before: pair[0] });
    }
    // The embedding and `before` blocks lie in front of a boundary.
    let ends = places.iter().map(|before| before + 1).chain([layers + 2]);
    let mut start = 0;
    let counts: Vec<usize> = ends.map(|end| end - mem::replace(&mut start, end)).collect();
    LayerMap::from_counts(layers, &counts).map_err(EvaluateError::LayerMap)
}
