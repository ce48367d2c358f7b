//! What a model is: the numbers from which every unit is built.

use serde::{Deserialize, Serialize};

use crate::config::{Family, ModelConfig};

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
}
