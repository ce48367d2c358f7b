//! `thinwire export`: a model as a Hugging Face folder.

mod report;
mod shard_size;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use thinwire_train::config::TokenizerSource;
use thinwire_train::evaluate::SavedModel;
use thinwire_train::export::{ExportFormat, ExportOptions, Exporter};

use self::report::Report;
use self::shard_size::ShardSize;
use crate::error::CommandError;
use crate::output::Output;
use crate::progress;

/// Write a model as a Hugging Face folder, which transformers loads.
///
/// The folder gets the configuration, the weights, and the tokenizer with its chat template. Adapters that a run has
/// trained are merged into the weights. It appears under its name when all of it is on the disk.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// A run's folder, for its newest complete checkpoint, a checkpoint's folder (step-00000100), a Hugging Face folder
    /// or a .gguf file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// The folder to write.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write the run's adapters alone, as a folder that the PEFT library loads.
    #[arg(long)]
    adapter: bool,
    /// Number format of the weights; f16 and bf16 round to nearest, half to even.
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    dtype: DType,
    /// Most bytes of weights in a file, as in 500MB or 5GB (powers of 1000).
    #[arg(long, value_name = "SIZE", default_value = "5GB", conflicts_with = "adapter")]
    shard_size: ShardSize,
    /// The tokenizer of training: `byte`, a tokenizer.json, or a model that brings it [default: where the run had it, or
    /// the model's].
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<TokenizerSource>,
    /// Replace an exported model in the folder; one with other files in it is refused all the same.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum DType {
    F32,
    Bf16,
    F16,
}

impl From<DType> for ExportFormat {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::F32,
            DType::Bf16 => Self::BF16,
            DType::F16 => Self::F16,
        }
    }
}

impl Export {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let model = SavedModel::open(&self.model, self.tokenizer.as_ref())?;
        let exporter = Exporter::new(&model)?;
        let tensors =
            if self.adapter { exporter.adapter_tensors() } else { exporter.config().tensors() };
        let options = ExportOptions {
            format: self.dtype.into(),
            shard_bytes: self.shard_size.bytes(),
            replace: self.overwrite,
        };
        let progress = progress::bar(tensors.len() as u64, "tensors");
        let written = || progress.inc(1);
        let result = if self.adapter {
            exporter.write_adapters(&self.out, options, written)
        } else {
            exporter.write(&self.out, options, written)
        };
        progress.finish_and_clear();
        result?;
        output.print(&Report {
            files: report::files(&self.out)?,
            folder: self.out,
            model_type: exporter.config().family.model_type(),
            adapter: self.adapter,
            parameters: tensors.iter().map(|tensor| tensor.len() as u64).sum(),
            dtype: self.dtype,
            model: self.model,
            step: model.step(),
        })?;
        Ok(())
    }
}
