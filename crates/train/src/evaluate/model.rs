//! A trained model on disk.

use std::mem;
use std::path::Path;

use burn::tensor::Device;
use thinwire_codec::CodecSpec;

use super::{Boundary, EvaluateError, Pipeline};
use crate::checkpoint;
use crate::config::{Config, EvalConfig, LayerMap, StageUnits, TokenizerSource, Unit};
use crate::data::{Corpus, Tokenizer};
use crate::model::Architecture;
use crate::run::FoundCheckpoint;

/// A trained model, its weights still in their files, and how its run used it.
#[derive(Debug)]
pub struct SavedModel {
    tokenizer: Tokenizer,
    found: FoundCheckpoint,
}

impl SavedModel {
    /// Opens a run's folder (its newest complete checkpoint) or a checkpoint's step folder. `tokenizer` replaces what
    /// the run's configuration names; it must be the one of training.
    ///
    /// # Errors
    /// There is no checkpoint, or no tokenizer that fits it.
    pub fn open(path: &Path, tokenizer: Option<&TokenizerSource>) -> Result<Self, EvaluateError> {
        let found = FoundCheckpoint::find(path)?;
        let expected = &found.manifest.run.tokenizer;
        let byte = (expected == "byte").then_some(&TokenizerSource::Byte);
        let configured = found.config.as_ref().map(|config| &config.data.tokenizer);
        let source = tokenizer.or(byte).or(configured);
        let source = source.ok_or_else(|| EvaluateError::NoTokenizer { id: expected.clone() })?;
        let tokenizer = Tokenizer::load(source)?;
        if tokenizer.id() != expected {
            let (expected, found) = (expected.clone(), tokenizer.id().to_owned());
            return Err(EvaluateError::OtherTokenizer { expected, found });
        }
        let (vocab, ids) = (found.manifest.run.architecture.vocab, tokenizer.vocab_size());
        if vocab < ids {
            return Err(EvaluateError::Vocabulary { vocab, tokenizer: ids });
        }
        Ok(Self { tokenizer, found })
    }

    /// What the model is.
    pub fn architecture(&self) -> &Architecture {
        &self.found.manifest.run.architecture
    }

    /// Steps of training.
    pub fn step(&self) -> u64 {
        self.found.manifest.step
    }

    /// Tokens in a sequence: the run's, or the model's context.
    pub fn sequence(&self) -> usize {
        self.config().map_or(self.architecture().context, |config| config.train.sequence)
    }

    /// Sequences in a micro-batch: as the run evaluates, or the default.
    pub fn micro_batch(&self) -> usize {
        self.config().map_or(EvalConfig::default().micro_batch, |config| config.eval.micro_batch)
    }

    /// The boundaries of the run.
    ///
    /// # Errors
    /// The manifest's stages are no partition of the model.
    pub fn boundaries(&self) -> Result<Vec<usize>, EvaluateError> {
        let stages = self.found.manifest.run.stages.clone();
        let map = LayerMap::new(self.architecture().layers, stages).map_err(EvaluateError::LayerMap)?;
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

    /// Reads a text that is to be evaluated in sequences of `sequence` tokens.
    ///
    /// # Errors
    /// The text cannot be read or tokenized or is too short; the sequences are longer than the model's context.
    pub fn read_text(&self, path: &Path, sequence: usize) -> Result<Corpus, EvaluateError> {
        let context = self.architecture().context;
        if sequence > context {
            return Err(EvaluateError::Sequence { sequence, context });
        }
        Ok(Corpus::load(path, &self.tokenizer)?)
    }

    /// Loads the weights into a pipeline on this machine's processor, cut at `boundaries` (in any order).
    ///
    /// # Errors
    /// A boundary that does not exist or is named twice; a file that is not what the manifest says.
    pub fn load(&self, mut boundaries: Vec<Boundary>) -> Result<Pipeline, EvaluateError> {
        boundaries.sort_by_key(Boundary::before);
        let map = cut(self.architecture().layers, &boundaries)?;
        let device = Device::flex();
        let load = |units: &StageUnits| {
            let units: Vec<Unit> = units.iter().collect();
            checkpoint::load_part(&self.found.dir, self.step(), &units, &device)
        };
        let parts = map.stages().iter().map(load).collect::<Result<_, _>>()?;
        Ok(Pipeline::new(parts, boundaries, &device))
    }

    fn config(&self) -> Option<&Config> {
        self.found.config.as_ref()
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
