//! What a model is: the numbers from which every unit is built.

use serde::{Deserialize, Serialize};
use thinwire_codec::Shape;
use thinwire_ops::WeightLayout;

use super::Lora;
use crate::config::{ConfigError, Family, LinearLayer, LoraConfig, ModelConfig, RopeScaling, Unit};

/// A decoder-only transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// The kind of block.
    pub family: Family,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the residual stream, in channels.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// Channels of one head, where that is not `hidden / heads`.
    #[serde(default)]
    pub head_dim: Option<usize>,
    /// Key and value heads; divides `heads`. GPT-2 has as many as `heads`.
    pub kv_heads: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// Longest sequence, in tokens.
    pub context: usize,
    /// Number of token ids.
    pub vocab: usize,
    /// Whether the head multiplies by the embedding matrix.
    pub tied: bool,
    /// Added to the variance in every norm.
    pub norm_eps: f64,
    /// Base of the rotary frequencies (all families but GPT-2).
    pub rope_theta: f64,
    /// How they are slowed down.
    #[serde(default)]
    pub rope_scaling: Option<RopeScaling>,
    /// The adapters, which then are all that is trained.
    #[serde(default)]
    pub lora: Option<Lora>,
}

impl Architecture {
    /// The model that a checked configuration describes, for a tokenizer of `vocab` ids.
    pub fn new(config: &ModelConfig, vocab: usize) -> Self {
        Self {
            family: config.family,
            layers: config.layers,
            hidden: config.hidden,
            heads: config.heads,
            head_dim: config.head_dim.filter(|dim| dim.checked_mul(config.heads) != Some(config.hidden)),
            kv_heads: config.kv_heads(),
            ffn: config.ffn(),
            context: config.context,
            vocab,
            tied: config.tie_embeddings,
            norm_eps: config.norm_eps,
            rope_theta: config.rope_theta(),
            rope_scaling: config.rope_scaling,
            lora: None,
        }
    }

    /// The same model with the adapters of a checked configuration, if it has any.
    #[must_use]
    pub fn with_lora(self, config: Option<&LoraConfig>) -> Self {
        let lora = config.map(|config| Lora::new(config, &self.as_config()));
        Self { lora, ..self }
    }

    /// Channels of one head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden / self.heads)
    }

    /// Whether positions enter by rotation of queries and keys: all families but GPT-2.
    pub fn is_rotary(&self) -> bool {
        self.family != Family::Gpt2
    }

    /// The module of block `index`.
    pub(crate) fn block_name(&self, index: usize) -> String {
        match self.family {
            Family::Gpt2 => format!("transformer.h.{index}"),
            _ => format!("model.layers.{index}"),
        }
    }

    /// How the linear layers of the blocks store their weights.
    pub fn weight_layout(&self) -> WeightLayout {
        if self.family == Family::Gpt2 { WeightLayout::InOut } else { WeightLayout::OutIn }
    }

    /// Whether training changes a matrix that the embedding and the head share.
    pub fn trains_tied(&self) -> bool {
        self.tied && self.lora.is_none()
    }

    /// That matrix, if there is one, as a codec gets its gradient: `[1, vocab, hidden]`.
    pub fn tied_shape(&self) -> Option<Shape> {
        self.trains_tied().then(|| Shape::new(1, self.vocab, self.hidden))
    }

    /// Checks numbers that come from a file as those of a configuration are checked.
    ///
    /// # Errors
    /// The first number that no model can have, under its configuration key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let config = self.as_config();
        config.validate()?;
        self.lora.as_ref().map_or(Ok(()), |lora| {
            let Lora { rank, alpha, targets } = lora.clone();
            LoraConfig { rank, alpha: Some(alpha), targets: Some(targets) }.validate(&config)
        })
    }

    fn as_config(&self) -> ModelConfig {
        ModelConfig {
            pretrained: None,
            family: self.family,
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            head_dim: self.head_dim,
            kv_heads: Some(self.kv_heads),
            ffn: Some(self.ffn),
            context: self.context,
            tie_embeddings: self.tied,
            norm_eps: self.norm_eps,
            rope_theta: self.is_rotary().then_some(self.rope_theta),
            rope_scaling: self.rope_scaling,
            vocab: Some(self.vocab),
        }
    }

    /// Values in the parameters of `unit`, adapters included, known without building it; `u64::MAX` where that is not
    /// enough.
    ///
    /// A tied head counts its copy of the embedding matrix.
    pub fn parameters(&self, unit: Unit) -> u64 {
        self.weights(unit).saturating_add(self.adapters(unit))
    }

    /// Of [`Architecture::parameters`], those that training changes.
    pub fn trainable(&self, unit: Unit) -> u64 {
        if self.lora.is_some() { self.adapters(unit) } else { self.weights(unit) }
    }

    fn adapters(&self, unit: Unit) -> u64 {
        let (Some(lora), Unit::Block(_)) = (&self.lora, unit) else { return 0 };
        let layers = self.adapted_layers().into_iter();
        let sides = layers.map(|layer| (layer.fan_in as u64).saturating_add(layer.fan_out as u64));
        sides.fold(0, u64::saturating_add).saturating_mul(lora.rank as u64)
    }

    /// The layers of every block that have an adapter.
    pub(crate) fn adapted_layers(&self) -> Vec<LinearLayer> {
        let mut layers = LinearLayer::all(&self.as_config());
        layers.retain(|layer| self.lora.as_ref().is_some_and(|lora| lora.adapts(layer.path)));
        layers
    }

    fn weights(&self, unit: Unit) -> u64 {
        let [d, f, vocab, context] = [self.hidden, self.ffn, self.vocab, self.context].map(|n| n as u64);
        let matrix = u64::saturating_mul;
        let [heads, kv_heads] = [self.heads, self.kv_heads].map(|n| matrix(n as u64, self.head_dim() as u64));
        let biased = |a: u64, b: u64| matrix(a, b).saturating_add(b);
        let norm = if self.family == Family::Gpt2 { matrix(2, d) } else { d };
        let terms = match (unit, self.family) {
            (Unit::Embed, Family::Gpt2) => vec![matrix(vocab, d), matrix(context, d)],
            (Unit::Embed, _) => vec![matrix(vocab, d)],
            (Unit::Block(_), Family::Gpt2) => {
                vec![norm, biased(d, matrix(3, d)), biased(d, d), norm, biased(d, f), biased(f, d)]
            }
            (Unit::Block(_), family) => {
                let [q, kv, extra] = match family {
                    Family::Qwen2 => [biased(d, heads), biased(d, kv_heads), 0],
                    Family::Qwen3 => {
                        [matrix(d, heads), matrix(d, kv_heads), matrix(2, self.head_dim() as u64)]
                    }
                    _ => [matrix(d, heads), matrix(d, kv_heads), 0],
                };
                let mlp = matrix(d, f);
                vec![norm, q, kv, kv, extra, matrix(d, heads), norm, mlp, mlp, mlp]
            }
            (Unit::Head, _) => vec![norm, matrix(vocab, d)],
        };
        terms.into_iter().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::config::StageUnits;
    use crate::model::{Parameter, Part};

    #[test]
    fn parameters_are_counted_as_they_are_built() {
        let llama = Architecture {
            family: Family::Llama,
            layers: 2,
            hidden: 24,
            heads: 6,
            head_dim: None,
            kv_heads: 2,
            ffn: 40,
            context: 7,
            vocab: 31,
            tied: true,
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            lora: None,
        };
        let gpt2 = Architecture { family: Family::Gpt2, kv_heads: 6, ..llama.clone() };
        let qwen2 = Architecture { family: Family::Qwen2, ..llama.clone() };
        let qwen3 = Architecture { family: Family::Qwen3, head_dim: Some(10), ..llama.clone() };
        let lora = |arch: &Architecture, targets: &[&str]| {
            let targets = targets.iter().map(ToString::to_string).collect();
            Architecture { lora: Some(Lora { rank: 3, alpha: 6.0, targets }), ..arch.clone() }
        };
        let adapted =
            [lora(&gpt2, &["c_attn", "mlp.c_proj"]), lora(&qwen2, &["k_proj", "down_proj", "o_proj"])];
        for arch in [gpt2, llama, qwen2, qwen3].into_iter().chain(adapted) {
            arch.validate().unwrap();
            for unit in StageUnits::whole(2).iter() {
                let part = Part::new(&arch, &[unit], 0, &Device::flex());
                let built: usize = part.params().iter().map(Parameter::len).sum();
                assert_eq!(arch.parameters(unit), built as u64, "{:?} {unit}", arch.family);
                let all = 0..part.params().len();
                let trained: usize =
                    part.params().trainable(&all).map(|(_, parameter)| parameter.len()).sum();
                assert_eq!(arch.trainable(unit), trained as u64, "{:?} {unit}", arch.family);
            }
            let forged = Architecture { hidden: usize::MAX, heads: 1, ..arch };
            assert_eq!(forged.parameters(Unit::Block(0)), u64::MAX);
        }
    }
}
