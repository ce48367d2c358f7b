//! Low-rank adapters as the PEFT library loads them.

use std::path::Path;

use serde_json::{Value, json};

use super::{ExportFormat, files, named, publish, weights};
use crate::{Error, TensorSpec};

pub(super) const ADAPTER_CONFIG: &str = "adapter_config.json";
pub(super) const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";

/// What PEFT has in front of the names of modules: those of its own wrappers.
const PREFIX: &str = "base_model.model.";

/// A low-rank adapter (Hu et al., 2021) of a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterConfig {
    /// Path or hub name of the model that it is for.
    pub base: String,
    /// Rows of A and columns of B.
    pub rank: usize,
    /// What it adds is multiplied by `alpha / rank`.
    pub alpha: f64,
    /// Names of the modules that are adapted, or ends of their paths.
    pub targets: Vec<String>,
    /// Whether those modules store their weights `[in, out]`, as GPT-2's do.
    pub fan_in_fan_out: bool,
}

/// What to write.
#[derive(Debug, Clone)]
pub struct AdapterExport<'a> {
    /// The adapter.
    pub config: &'a AdapterConfig,
    /// A and B of every adapted module: `<module>.lora_A.weight`, `[rank, in]`, and `<module>.lora_B.weight`, `[out, rank]`.
    pub tensors: &'a [TensorSpec],
    /// Number format of the weights.
    pub format: ExportFormat,
    /// Whether a folder that holds an exported model or adapter, and nothing else, may be replaced.
    pub replace: bool,
}

/// Writes a folder with `adapter_config.json` and `adapter_model.safetensors`, as [`export()`](super::export()) writes one
/// with a model.
///
/// # Errors
/// As [`export()`](super::export()).
pub fn export_adapter<E>(
    folder: impl AsRef<Path>,
    export: &AdapterExport<'_>,
    mut tensor: impl FnMut(&TensorSpec) -> Result<Vec<f32>, E>,
) -> Result<(), Error>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let names: Vec<String> = export.tensors.iter().map(|spec| format!("{PREFIX}{}", spec.name)).collect();
    let tensors: Vec<_> = names.iter().map(String::as_str).zip(export.tensors).collect();
    publish::write_folder(folder.as_ref(), export.replace, |temporary| {
        let weights = temporary.join(ADAPTER_WEIGHTS);
        weights::write_file(&weights, export.format, &tensors, &mut |spec| named(spec, tensor(spec)))?;
        files::write_json(&temporary.join(ADAPTER_CONFIG), &config(export.config))
    })
}

fn config(adapter: &AdapterConfig) -> Value {
    // PEFT writes a whole number.
    let whole = adapter.alpha as i64;
    let alpha = if whole as f64 == adapter.alpha { json!(whole) } else { json!(adapter.alpha) };
    json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": adapter.base,
        "r": adapter.rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "target_modules": adapter.targets,
        "fan_in_fan_out": adapter.fan_in_fan_out,
        "bias": "none",
        "inference_mode": true,
    })
}
