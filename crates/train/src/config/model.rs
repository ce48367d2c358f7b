//! `[model]`

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, f32_is_normal, require, require_size};

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
}

/// The model's family and sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// `"gpt2"` or `"llama"`. Required.
    pub family: Family,
    /// Transformer blocks. Required.
    pub layers: usize,
    /// Channels of the residual stream: the width of what crosses a boundary. Required.
    pub hidden: usize,
    /// Attention heads of `hidden / heads` channels. Required.
    pub heads: usize,
    /// Key and value heads, each shared by `heads / kv_heads` query heads (`llama` only). Default `heads`.
    #[serde(default)]
    pub kv_heads: Option<usize>,
    /// Channels inside the feed-forward layer. Default `4 * hidden` for `gpt2`; for `llama`, `8 / 3 * hidden`
    /// rounded up to a multiple of 32.
    #[serde(default)]
    pub ffn: Option<usize>,
    /// Longest sequence, in tokens. `gpt2` keeps a parameter row of `hidden` for each. Default 1024.
    #[serde(default = "defaults::context")]
    pub context: usize,
    /// The head reuses the embedding matrix, which saves `vocab * hidden` parameters. Default true.
    #[serde(default = "defaults::tie_embeddings")]
    pub tie_embeddings: bool,
    /// Added to the variance in the norms. Default 1e-5.
    #[serde(default = "defaults::norm_eps")]
    pub norm_eps: f64,
    /// Base of the rotary frequencies (`llama` only). Default 10000.
    #[serde(default)]
    pub rope_theta: Option<f64>,
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
    /// Channels of one head.
    pub fn head_size(&self) -> usize {
        self.hidden / self.heads
    }

    /// Key and value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Channels inside the feed-forward layer.
    pub fn ffn(&self) -> usize {
        self.ffn.unwrap_or_else(|| match self.family {
            Family::Gpt2 => 4 * self.hidden,
            Family::Llama => (8 * self.hidden).div_ceil(3).next_multiple_of(32),
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
        require(
            self.heads >= 1 && self.hidden.is_multiple_of(self.heads),
            "model.heads",
            self.heads,
            format_args!("a divisor of model.hidden = {}", self.hidden),
        )?;
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
            Family::Llama => self.validate_llama(),
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
        require(
            self.rope_theta.is_none(),
            "model.rope_theta",
            self.rope_theta(),
            "no value for family gpt2, which has no rotary positions",
        )
    }

    fn validate_llama(&self) -> Result<(), ConfigError> {
        let kv_heads = self.kv_heads();
        require(
            kv_heads >= 1 && self.heads.is_multiple_of(kv_heads),
            "model.kv_heads",
            kv_heads,
            format_args!("a divisor of model.heads = {}", self.heads),
        )?;
        require(
            self.head_size().is_multiple_of(2),
            "model.heads",
            self.heads,
            format_args!("an even model.hidden / model.heads for rotary pairs, not {}", self.head_size()),
        )?;
        let theta = self.rope_theta();
        require(f32_is_normal(theta), "model.rope_theta", theta, "a positive number that f32 can hold")
    }
}
