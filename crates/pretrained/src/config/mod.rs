//! What a decoder computes, in words that belong to no file format.

mod fields;
mod hf;
mod rope;
mod tensors;
mod validate;
mod write;

pub use rope::{Rope, RopeScaling};
pub use tensors::TensorSpec;

pub(crate) use hf::read;
pub(crate) use write::to_json;

/// The kinds of decoder that are supported. They differ in norms, positions, biases and the order of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// LayerNorm, learned positions, biases everywhere, GELU (tanh form), joint QKV stored as `[in, out]`.
    Gpt2,
    /// RMSNorm, rotary positions (half-split), SwiGLU, no bias. Llama 2 and 3.x, SmolLM2.
    Llama,
    /// Llama with biases on Q, K and V. Qwen2 and Qwen2.5.
    Qwen2,
    /// Llama with an RMSNorm over each head of Q and K, in front of the rotation. Qwen3.
    Qwen3,
}

impl Family {
    /// Every family, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Gpt2, Self::Llama, Self::Qwen2, Self::Qwen3];

    /// `model_type` of a `config.json`, and `general.architecture` of a GGUF file.
    pub const fn model_type(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt2",
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The class of the transformers library.
    pub const fn architecture(self) -> &'static str {
        match self {
            Self::Gpt2 => "GPT2LMHeadModel",
            Self::Llama => "LlamaForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    /// Whether the projections to Q, K and V of a rotary family have biases.
    pub const fn qkv_bias(self) -> bool {
        matches!(self, Self::Qwen2)
    }

    /// Whether each head of Q and K is normalized.
    pub const fn qk_norm(self) -> bool {
        matches!(self, Self::Qwen3)
    }

    fn from_model_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.model_type() == name)
    }
}

/// A decoder-only language model: everything that decides its parameters and what it computes.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Kind of decoder.
    pub family: Family,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the residual stream, in channels.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`. Equal to `heads` for GPT-2.
    pub kv_heads: usize,
    /// Channels of a head; `heads * head_dim` may differ from `hidden`.
    pub head_dim: usize,
    /// Inner width of the feed-forward layer, in channels.
    pub ffn: usize,
    /// Most positions the model was made for; the rows of the position table of GPT-2.
    pub context: usize,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Whether the head uses the embedding's matrix.
    pub tied: bool,
    /// Added to the variance (or mean square) in every norm.
    pub norm_eps: f64,
    /// Rotary positions; `None` for GPT-2, which learns its own.
    pub rope: Option<Rope>,
}

impl DecoderConfig {
    /// The `model_type`s that can be read, for messages.
    pub(crate) fn supported_families() -> String {
        Family::ALL.map(Family::model_type).join(", ")
    }

    pub(crate) fn family_named(name: &str) -> Option<Family> {
        Family::from_model_type(name)
    }
}
