//! What a model is: the numbers from which every unit is built.

use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, Family, ModelConfig, Unit};

/// A decoder-only transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// The kind of block.
    pub family: Family,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the residual stream, in channels.
    pub hidden: usize,
    /// Attention heads; divides `hidden`.
    pub heads: usize,
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
    /// Base of the rotary frequencies (Llama).
    pub rope_theta: f64,
}

impl Architecture {
    /// The model that a checked configuration describes, for a tokenizer of `vocab` ids.
    pub fn new(config: &ModelConfig, vocab: usize) -> Self {
        Self {
            family: config.family,
            layers: config.layers,
            hidden: config.hidden,
            heads: config.heads,
            kv_heads: config.kv_heads(),
            ffn: config.ffn(),
            context: config.context,
            vocab,
            tied: config.tie_embeddings,
            norm_eps: config.norm_eps,
            rope_theta: config.rope_theta(),
        }
    }

    /// Channels of one head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Checks numbers that come from a file as those of a configuration are checked.
    ///
    /// # Errors
    /// The first number that no model can have, under its configuration key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let model = ModelConfig {
            family: self.family,
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            kv_heads: Some(self.kv_heads),
            ffn: Some(self.ffn),
            context: self.context,
            tie_embeddings: self.tied,
            norm_eps: self.norm_eps,
            rope_theta: (self.family == Family::Llama).then_some(self.rope_theta),
            vocab: Some(self.vocab),
        };
        model.validate()
    }

    /// Values in the parameters of `unit`, known without building it; `u64::MAX` where that is not enough.
    ///
    /// A tied head counts its copy of the embedding matrix.
    pub fn parameters(&self, unit: Unit) -> u64 {
        let [d, f, vocab, context] = [self.hidden, self.ffn, self.vocab, self.context].map(|n| n as u64);
        let kv = (self.kv_heads as u64).saturating_mul(self.head_dim() as u64);
        let matrix = u64::saturating_mul;
        let biased = |a: u64, b: u64| matrix(a, b).saturating_add(b);
        let norm = if self.family == Family::Gpt2 { matrix(2, d) } else { d };
        let terms = match (unit, self.family) {
            (Unit::Embed, Family::Gpt2) => vec![matrix(vocab, d), matrix(context, d)],
            (Unit::Embed, Family::Llama) => vec![matrix(vocab, d)],
            (Unit::Block(_), Family::Gpt2) => {
                vec![norm, biased(d, matrix(3, d)), biased(d, d), norm, biased(d, f), biased(f, d)]
            }
            (Unit::Block(_), Family::Llama) => {
                let (attention, mlp) = ([matrix(d, d), matrix(d, kv)], matrix(d, f));
                vec![norm, attention[0], attention[0], attention[1], attention[1], norm, mlp, mlp, mlp]
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
        for family in [Family::Gpt2, Family::Llama] {
            let arch = Architecture {
                family,
                layers: 2,
                hidden: 24,
                heads: 6,
                kv_heads: if family == Family::Gpt2 { 6 } else { 2 },
                ffn: 40,
                context: 7,
                vocab: 31,
                tied: true,
                norm_eps: 1e-5,
                rope_theta: 10_000.0,
            };
            arch.validate().unwrap();
            for unit in (StageUnits { embed: true, blocks: 0..2, head: true }).iter() {
                let part = Part::new(&arch, &[unit], 0, &Device::flex());
                let built: usize = part.params().iter().map(Parameter::len).sum();
                assert_eq!(arch.parameters(unit), built as u64, "{family:?} {unit}");
            }
            let forged = Architecture { hidden: usize::MAX, heads: 1, ..arch };
            assert_eq!(forged.parameters(Unit::Block(0)), u64::MAX);
        }
    }
}
