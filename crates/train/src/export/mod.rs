//! A model on its way out: as a Hugging Face folder, which `transformers` loads.
//!
//! One tensor is in memory at a time. Of a tied matrix, the embedding's copy is written.

mod error;
mod place;

use std::path::{Path, PathBuf};

use thinwire_pretrained::{DecoderConfig, Export, TensorSpec, TokenizerFiles};

pub use error::ExportError;
pub use thinwire_pretrained::ExportFormat;

use crate::checkpoint::{self, Weights};
use crate::evaluate::{SavedModel, Source};
use crate::pretrained::read_tokenizer;

/// How the folder is written.
#[derive(Debug, Clone, Copy)]
pub struct ExportOptions {
    /// Number format of the weights.
    pub format: ExportFormat,
    /// Most bytes of values in one weight file; a tensor larger than that has a file of its own.
    pub shard_bytes: u64,
    /// Whether a folder that holds an exported model, and nothing else, may be replaced.
    pub replace: bool,
}

/// A model and its tokenizer, ready to be written.
#[derive(Debug)]
pub struct Exporter<'a> {
    model: &'a SavedModel,
    config: DecoderConfig,
    tokenizer: TokenizerFiles,
}

impl<'a> Exporter<'a> {
    /// Reads what is small: the configuration and the tokenizer. A run's `byte` tokenizer becomes a `tokenizer.json`
    /// whose ids are the bytes.
    ///
    /// # Errors
    /// The tokenizer cannot be read.
    pub fn new(model: &'a SavedModel) -> Result<Self, ExportError> {
        let config = DecoderConfig::from(model.architecture());
        Ok(Self { model, config, tokenizer: read_tokenizer(model.tokenizer_source())? })
    }

    /// What the model is, and which tensors it has.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Writes `folder`, which appears whole or not at all; `written` is called after each tensor. The files of a
    /// checkpoint are checked against its manifest first.
    ///
    /// # Errors
    /// `folder` lies in the model's own folder, or has files in it that may not be replaced; the model is damaged; the
    /// disk is full.
    pub fn write(
        &self,
        folder: &Path,
        options: ExportOptions,
        mut written: impl FnMut(),
    ) -> Result<(), ExportError> {
        let home = self.home();
        if place::lies_in(folder, &home) {
            return Err(ExportError::InsideModel { folder: folder.into(), model: home });
        }
        let ExportOptions { format, shard_bytes, replace } = options;
        let tokenizer = Some(&self.tokenizer);
        let export = Export { config: &self.config, tokenizer, format, shard_bytes, replace };
        match self.model.source() {
            Source::Checkpoint(found) => {
                let weights = Weights::open(&found.dir, found.manifest.step)?;
                let read = |spec: &TensorSpec| weights.read(&spec.name, &spec.shape).inspect(|_| written());
                thinwire_pretrained::export(folder, &export, read)?;
            }
            Source::Pretrained(model) => {
                let read = |spec: &TensorSpec| model.read(&spec.name, &spec.shape).inspect(|_| written());
                thinwire_pretrained::export(folder, &export, read)?;
            }
        }
        Ok(())
    }

    /// The folder or file that the weights are in.
    fn home(&self) -> PathBuf {
        match self.model.source() {
            Source::Checkpoint(found) => checkpoint::step_folder(&found.dir, found.manifest.step),
            Source::Pretrained(model) => model.path().into(),
        }
    }
}
