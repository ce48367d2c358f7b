//! A model on its way out: as a Hugging Face folder, which `transformers` loads, its adapters merged in; or its adapters
//! alone, as a folder that `peft` loads.
//!
//! One tensor is in memory at a time. Of a tied matrix, the embedding's copy is written.

mod adapters;
mod error;
mod place;

use std::path::{Path, PathBuf};

use thinwire_pretrained::{AdapterExport, DecoderConfig, Export, TensorSpec, TokenizerFiles};

use adapters::Adapters;
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
        self.check_place(folder)?;
        let ExportOptions { format, shard_bytes, replace } = options;
        let tokenizer = Some(&self.tokenizer);
        let export = Export { config: &self.config, tokenizer, format, shard_bytes, replace };
        match self.model.source() {
            Source::Checkpoint(found) => {
                let weights = Weights::open(&found.dir, found.manifest.step, self.model.architecture())?;
                let read = |spec: &TensorSpec| weights.read(&spec.name, &spec.shape).inspect(|_| written());
                thinwire_pretrained::export(folder, &export, read)?;
            }
            Source::Adapters(..) => {
                let adapters = self.adapters()?;
                let read = |spec: &TensorSpec| adapters.merged(spec).inspect(|_| written());
                thinwire_pretrained::export(folder, &export, read)?;
            }
            Source::Pretrained(model) => {
                let read = |spec: &TensorSpec| model.read(&spec.name, &spec.shape).inspect(|_| written());
                thinwire_pretrained::export(folder, &export, read)?;
            }
        }
        Ok(())
    }

    /// The tensors that [`Exporter::write_adapters`] writes; none but of a run that trained adapters.
    pub fn adapter_tensors(&self) -> Vec<TensorSpec> {
        let architecture = self.model.architecture();
        architecture.lora.as_ref().map_or_else(Vec::new, |lora| adapters::tensors(architecture, lora))
    }

    /// Writes the adapters alone, in one file, as PEFT has them; else as [`Exporter::write`].
    ///
    /// # Errors
    /// As [`Exporter::write`], or the model has no adapters.
    pub fn write_adapters(
        &self,
        folder: &Path,
        options: ExportOptions,
        mut written: impl FnMut(),
    ) -> Result<(), ExportError> {
        self.check_place(folder)?;
        let Adapters { architecture, lora, base, weights } = self.adapters()?;
        let ExportOptions { format, replace, .. } = options;
        let config = adapters::config(architecture, lora, base);
        let tensors = adapters::tensors(architecture, lora);
        let export = AdapterExport { config: &config, tensors: &tensors, format, replace };
        let read = |spec: &TensorSpec| weights.read(&spec.name, &spec.shape).inspect(|_| written());
        Ok(thinwire_pretrained::export_adapter(folder, &export, read)?)
    }

    fn adapters(&self) -> Result<Adapters<'_>, ExportError> {
        let architecture = self.model.architecture();
        match (self.model.source(), &architecture.lora) {
            (Source::Adapters(found, base), Some(lora)) => {
                let weights = Weights::open(&found.dir, found.manifest.step, architecture)?;
                Ok(Adapters { architecture, lora, base, weights })
            }
            _ => Err(ExportError::NoAdapters { model: self.home() }),
        }
    }

    fn check_place(&self, folder: &Path) -> Result<(), ExportError> {
        let base = match self.model.source() {
            Source::Adapters(_, base) => Some(base.path().to_owned()),
            Source::Checkpoint(_) | Source::Pretrained(_) => None,
        };
        match [self.home()].into_iter().chain(base).find(|home| place::lies_in(folder, home)) {
            Some(model) => Err(ExportError::InsideModel { folder: folder.into(), model }),
            None => Ok(()),
        }
    }

    /// The folder or file that the weights are in; of adapters, they.
    fn home(&self) -> PathBuf {
        match self.model.source() {
            Source::Checkpoint(found) | Source::Adapters(found, _) => {
                checkpoint::step_folder(&found.dir, found.manifest.step)
            }
            Source::Pretrained(model) => model.path().into(),
        }
    }
}
