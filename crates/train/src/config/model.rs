//! `[model]`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, f32_is_normal, require, require_size};
use super::rope_scaling::RopeScaling;

/// Far above any model; keeps the tables that are sized by the number of layers small.
const MAX_LAYERS: usize = 65_536;

/// The architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Learned positions, `LayerNorm`, GELU, biases (Radford et al., 2019).
    Gpt2,
    /// Rotary positions, `RMSNorm`, `SwiGLU`, grouped-query attention, no biases (Touvron et al., 2023).
    Llama,
    /// Llama with biases on queries, keys and values (Qwen Team, 2024).
    Qwen2,
    /// Llama with a norm over the channels of each query and key head (Qwen Team, 2025).
    Qwen3,
}

impl Family {
    /// Its name in configurations and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt2",
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// The model's family and sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// A Hugging Face folder or a `.gguf` file from which the weights come. The other keys then come from it too: those
    /// that are written must agree with it. Default: none, and the weights start from the seed.
    #[serde(default)]
    pub pretrained: Option<PathBuf>,
    /// `"gpt2"`, `"llama"`, `"qwen2"` or `"qwen3"`. Required.
    pub family: Family,
    /// Transformer blocks. Required.
    pub layers: usize,
    /// Channels of the residual stream: the width of what crosses a boundary. Required.
    pub hidden: usize,
    /// Attention heads. Required.
    pub heads: usize,
    /// Channels of an attention head (all but `gpt2`). Default `hidden / heads`.
    #[serde(default)]
    pub head_dim: Option<usize>,
    /// Key and value heads, each shared by `heads / kv_heads` query heads (all but `gpt2`). Default `heads`.
    #[serde(default)]
    pub kv_heads: Option<usize>,
    /// Channels inside the feed-forward layer. Default `4 * hidden` for `gpt2`; for the others, `8 / 3 * hidden`
    /// rounded up to a multiple of 32.
    #[serde(default)]
    pub ffn: Option<usize>,
    /// Longest sequence, in tokens. `gpt2` keeps a parameter row of `hidden` for each. Default 1024.
    #[serde(default = "defaults::context")]
    pub context: usize,
    /// The head reuses the embedding matrix, which saves `vocab * hidden` parameters. Default true. A pretrained model that
    /// does may be trained without, the head starting as a copy: then no gradient of it crosses the stages.
    #[serde(default = "defaults::tie_embeddings")]
    pub tie_embeddings: bool,
    /// Added to the variance in the norms. Default 1e-5.
    #[serde(default = "defaults::norm_eps")]
    pub norm_eps: f64,
    /// Base of the rotary frequencies (all but `gpt2`). Default 10000.
    #[serde(default)]
    pub rope_theta: Option<f64>,
    /// How they are slowed down for long sequences (all but `gpt2`). Default: not at all.
    #[serde(default)]
    pub rope_scaling: Option<RopeScaling>,
    /// Rows of the embedding, to pad the tokenizer's vocabulary up. Default: the tokenizer's.
    #[serde(default)]
    pub vocab: Option<usize>,
}

mod defaults {
    pub(super) fn context() -> usize {
        1024
    }
    pub(super) fn tie_embeddings() -> bool {
        true
    }
    pub(super) fn norm_eps() -> f64 {
        1e-5
    }
}

impl ModelConfig {
    /// Channels of one attention head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or_else(|| self.hidden / self.heads)
    }

    /// Key and value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Channels inside the feed-forward layer.
    pub fn ffn(&self) -> usize {
        self.ffn.unwrap_or_else(|| match self.family {
            Family::Gpt2 => 4 * self.hidden,
            _ => (8 * self.hidden).div_ceil(3).next_multiple_of(32),
        })
    }

    /// Base of the rotary frequencies.
    pub fn rope_theta(&self) -> f64 {
        self.rope_theta.unwrap_or(10_000.0)
    }

    /// Rows of the embedding for a tokenizer with `tokens` tokens.
    ///
    /// # Errors
    /// `model.vocab` is smaller than that.
    pub fn vocab(&self, tokens: usize) -> Result<usize, ConfigError> {
        let vocab = self.vocab.unwrap_or(tokens);
        require(vocab >= tokens, "model.vocab", vocab, format_args!("at least the tokenizer's {tokens}"))?;
        Ok(vocab)
    }

    /// Checks the sizes against each other.
    ///
    /// # Errors
    /// The first value that no model can have.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        require(
            (1..=MAX_LAYERS).contains(&self.layers),
            "model.layers",
            self.layers,
            format_args!("from 1 to {MAX_LAYERS}"),
        )?;
        require_size("model.hidden", self.hidden)?;
        match self.head_dim {
            None => require(
                self.heads >= 1 && self.hidden.is_multiple_of(self.heads),
                "model.heads",
                self.heads,
                format_args!("a divisor of model.hidden = {}, or model.head_dim", self.hidden),
            )?,
            Some(head_dim) => {
                require_size("model.heads", self.heads)?;
                require_size("model.head_dim", head_dim)?;
                let heads = "model.heads * model.head_dim";
                require_size(heads, self.heads.saturating_mul(head_dim))?;
            }
        }
        require_size("model.ffn", self.ffn())?;
        require_size("model.context", self.context)?;
        require_size("model.vocab", self.vocab.unwrap_or(1))?;
        let eps = self.norm_eps;
        require(
            f32_is_normal(eps) && eps < 1.0,
            "model.norm_eps",
            eps,
            "a positive number below 1 that f32 can hold",
        )?;
        match self.family {
            Family::Gpt2 => self.validate_gpt2(),
            _ => self.validate_rotary(),
        }
    }

    fn validate_gpt2(&self) -> Result<(), ConfigError> {
        let kv_heads = self.kv_heads();
        require(
            kv_heads == self.heads,
            "model.kv_heads",
            kv_heads,
            "no value, or model.heads, for family gpt2",
        )?;
        let head_dim = self.head_dim();
        require(
            self.hidden == self.heads * head_dim,
            "model.head_dim",
            head_dim,
            "no value, or model.hidden / model.heads, for family gpt2",
        )?;
        for (key, given) in [
            ("model.rope_theta", self.rope_theta.map(|theta| theta.to_string())),
            ("model.rope_scaling", self.rope_scaling.map(|scaling| format!("{scaling:?}"))),
        ] {
            let value = given.as_deref().unwrap_or_default();
            require(given.is_none(), key, value, "no value for family gpt2, which has no rotary positions")?;
        }
        Ok(())
    }

    fn validate_rotary(&self) -> Result<(), ConfigError> {
        let kv_heads = self.kv_heads();
        require(
            kv_heads >= 1 && self.heads.is_multiple_of(kv_heads),
            "model.kv_heads",
            kv_heads,
            format_args!("a divisor of model.heads = {}", self.heads),
        )?;
        let head_dim = self.head_dim();
        let even = head_dim.is_multiple_of(2);
        match self.head_dim {
            Some(_) => require(even, "model.head_dim", head_dim, "an even number, for rotary pairs")?,
            None => require(
                even,
                "model.heads",
                self.heads,
                format_args!("an even model.hidden / model.heads for rotary pairs, not {head_dim}"),
            )?,
        }
        let theta = self.rope_theta();
        require(f32_is_normal(theta), "model.rope_theta", theta, "a positive number that f32 can hold")?;
        self.rope_scaling.as_ref().map_or(Ok(()), RopeScaling::validate)
    }
}
