//! Adapters on their way out: merged into the weights that they adapt, or by themselves.

use thinwire_ops::WeightLayout;
use thinwire_pretrained::{AdapterConfig, Pretrained, TensorSpec};

use super::ExportError;
use crate::checkpoint::Weights;
use crate::config::LinearLayer;
use crate::model::{Architecture, Lora, lora_names};

/// A trained run's adapters, and the model that they are for.
pub(super) struct Adapters<'a> {
    pub(super) architecture: &'a Architecture,
    pub(super) lora: &'a Lora,
    pub(super) base: &'a Pretrained,
    pub(super) weights: Weights,
}

impl Adapters<'_> {
    /// The tensor `spec` of the model that computes what the base and the adapters do.
    pub(super) fn merged(&self, spec: &TensorSpec) -> Result<Vec<f32>, ExportError> {
        let weight = self.base.read(&spec.name, &spec.shape)?;
        let module = spec.name.strip_suffix(".weight").filter(|module| self.lora.adapts(module));
        let (Some(module), &[rows, columns]) = (module, &spec.shape[..]) else { return Ok(weight) };
        let layout = self.architecture.weight_layout();
        let shape = [rows, columns];
        let [fan_in, fan_out] = if layout == WeightLayout::InOut { shape } else { [columns, rows] };
        let [a, b] = lora_names(module);
        let a = self.weights.read(&a, &[self.lora.rank, fan_in])?;
        let b = self.weights.read(&b, &[fan_out, self.lora.rank])?;
        Ok(self.lora.merge(weight, shape, layout, [a, b]))
    }
}

/// The tensors of the adapters, in model order.
pub(super) fn tensors(architecture: &Architecture, lora: &Lora) -> Vec<TensorSpec> {
    let layers: Vec<LinearLayer> = architecture.adapted_layers();
    let of_block = |block| {
        let name = architecture.block_name(block);
        layers.iter().flat_map(move |layer| {
            let [a, b] = lora_names(&format!("{name}.{}", layer.path));
            [(a, [lora.rank, layer.fan_in]), (b, [layer.fan_out, lora.rank])]
        })
    };
    let tensors = (0..architecture.layers).flat_map(of_block);
    tensors.map(|(name, shape)| TensorSpec { name, shape: shape.into() }).collect()
}

/// What PEFT has to know of them.
pub(super) fn config(architecture: &Architecture, lora: &Lora, base: &Pretrained) -> AdapterConfig {
    AdapterConfig {
        base: base.path().display().to_string(),
        rank: lora.rank,
        alpha: lora.alpha,
        targets: lora.targets.clone(),
        fan_in_fan_out: architecture.weight_layout() == WeightLayout::InOut,
    }
}
