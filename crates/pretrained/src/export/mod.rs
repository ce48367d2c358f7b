//! A model folder as the transformers library loads it, on its way out.

mod adapter;
mod files;
mod publish;
mod weights;

use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::Dtype;

pub use adapter::{AdapterConfig, AdapterExport, export_adapter};

use crate::{DecoderConfig, Error, TensorSpec, TokenizerFiles};

/// What to write.
#[derive(Debug, Clone)]
pub struct Export<'a> {
    /// The model; decides names and shapes of the tensors.
    pub config: &'a DecoderConfig,
    /// Written beside the weights, if there is one.
    pub tokenizer: Option<&'a TokenizerFiles>,
    /// Number format of the weights.
    pub format: ExportFormat,
    /// Most bytes of values in one weight file; a tensor larger than that has a file of its own.
    pub shard_bytes: u64,
    /// Whether a folder that holds an exported model, and nothing else, may be replaced.
    pub replace: bool,
}

impl<'a> Export<'a> {
    /// In f32, in files of up to 5 GB, as transformers does.
    pub fn new(config: &'a DecoderConfig) -> Self {
        Self {
            config,
            tokenizer: None,
            format: ExportFormat::F32,
            shard_bytes: 5_000_000_000,
            replace: false,
        }
    }
}

/// Number format of exported weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The values as they are.
    F32,
    /// Rounded to the nearest f16, half to even. A value that would become infinite is refused.
    F16,
    /// Rounded to the nearest bf16, half to even.
    BF16,
}

impl ExportFormat {
    /// The name in configuration files.
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
        }
    }

    /// Bytes of a value.
    fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    /// Appends `values` to `out`.
    fn encode(self, values: &[f32], out: &mut Vec<u8>) {
        match self {
            Self::F32 => out.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            Self::F16 => out.extend(values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes())),
            Self::BF16 => out.extend(values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes())),
        }
    }

    /// Whether a finite value stays finite.
    fn holds(self, value: f32) -> bool {
        match self {
            Self::F32 => true,
            Self::F16 => f16::from_f32(value).is_finite() || !value.is_finite(),
            Self::BF16 => bf16::from_f32(value).is_finite() || !value.is_finite(),
        }
    }
}

/// Writes a folder with `config.json`, the weights, the tokenizer and `generation_config.json`.
///
/// `tensor` is asked for the values of each tensor of the configuration, in its order and row-major, one at a time: one
/// tensor is in memory. The folder appears whole, under its name, when everything is on the disk; after an error
/// nothing is left, and a folder that was to be replaced is as it was.
///
/// # Errors
/// `folder` has files in it that may not be replaced, cannot be written, or `tensor` fails or gives another number of values.
pub fn export<E>(
    folder: impl AsRef<Path>,
    export: &Export<'_>,
    mut tensor: impl FnMut(&TensorSpec) -> Result<Vec<f32>, E>,
) -> Result<(), Error>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let folder = folder.as_ref();
    export.config.validate(folder)?;
    publish::write_folder(folder, export.replace, |temporary| {
        weights::write(temporary, export, &mut |spec| named(spec, tensor(spec)))?;
        files::write(temporary, export)
    })
}

/// An error of the caller's, with the tensor that it is about.
fn named<E>(spec: &TensorSpec, values: Result<Vec<f32>, E>) -> Result<Vec<f32>, Error>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    values.map_err(|source| Error::Source { name: spec.name.clone(), source: source.into() })
}
