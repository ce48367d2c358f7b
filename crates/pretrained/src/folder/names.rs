//! The names under which transformers' releases have saved the same tensors.

use crate::{DecoderConfig, Family};

/// The name in a model with a head: files of the bare model lack the prefix.
pub(super) fn canonical(family: Family, name: String) -> String {
    let prefix = match family {
        Family::Gpt2 => "transformer.",
        Family::Llama | Family::Qwen2 | Family::Qwen3 => "model.",
    };
    if name.starts_with(prefix) || name.starts_with("lm_head.") { name } else { format!("{prefix}{name}") }
}

/// Whether a tensor is no parameter: causal masks and rotation frequencies, which old releases saved, and the copy of
/// a tied embedding.
pub(super) fn is_ignored(config: &DecoderConfig, name: &str) -> bool {
    match config.family {
        _ if name == "lm_head.weight" => config.tied,
        Family::Gpt2 => name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"),
        Family::Llama | Family::Qwen2 | Family::Qwen3 => name.ends_with("rotary_emb.inv_freq"),
    }
}
