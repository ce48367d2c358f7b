//! What a model is: the numbers from which every unit is built.

use serde::{Deserialize, Serialize};

/// The two kinds of block that are built from one description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Learned positions, LayerNorm, GELU, biases (Radford et al., 2019).
    Gpt2,
    /// RoPE, RMSNorm, grouped-query attention, SwiGLU, no biases (Touvron et al., 2023).
    Llama,
}

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

/// Why a description is not a model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("model: {field} is {value}; {expected}")]
pub struct ArchitectureError {
    /// The field at fault.
    pub field: &'static str,
    /// Its value.
    pub value: usize,
    /// What it must be.
    pub expected: String,
}

impl Architecture {
    /// Channels of one head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// The first field that is zero or does not divide as it must.
    pub fn check(&self) -> Result<(), ArchitectureError> {
        let error = |field, value, expected: String| Err(ArchitectureError { field, value, expected });
        for (field, value) in [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("ffn", self.ffn),
            ("context", self.context),
            ("vocab", self.vocab),
        ] {
            if value == 0 {
                return error(field, value, "must be at least 1".into());
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return error("heads", self.heads, format!("must divide hidden = {}", self.hidden));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return error("kv_heads", self.kv_heads, format!("must divide heads = {}", self.heads));
        }
        match self.family {
            Family::Gpt2 if self.kv_heads != self.heads => {
                error("kv_heads", self.kv_heads, format!("GPT-2 has as many as heads = {}", self.heads))
            }
            Family::Llama if !self.head_dim().is_multiple_of(2) => {
                error("hidden", self.hidden, "rotary positions need an even number of channels a head".into())
            }
            _ => Ok(()),
        }
    }
}
