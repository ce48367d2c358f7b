//! Tensor names of Hugging Face and of llama.cpp, and what llama.cpp's conversion does to their layout.

use crate::layout::Layout;
use crate::{DecoderConfig, Family};

/// Parts of a block: Hugging Face's name, llama.cpp's.
const PARTS: [(&str, &str); 17] = [
    ("ln_1", "attn_norm"),
    ("attn.c_attn", "attn_qkv"),
    ("attn.c_proj", "attn_output"),
    ("ln_2", "ffn_norm"),
    ("mlp.c_fc", "ffn_up"),
    ("mlp.c_proj", "ffn_down"),
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// What stands outside the blocks.
const OUTER: [(&str, &str); 6] = [
    ("transformer.wte", "token_embd"),
    ("transformer.wpe", "position_embd"),
    ("transformer.ln_f", "output_norm"),
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
];

/// The name in a GGUF file of the Hugging Face tensor `name`, one of the configuration's, and its layout there.
pub(super) fn to_gguf(config: &DecoderConfig, name: &str) -> (String, Layout) {
    let (module, kind) = name.rsplit_once('.').unwrap_or((name, ""));
    if let Some((_, outer)) = OUTER.iter().find(|(other, _)| *other == module) {
        return (format!("{outer}.{kind}"), Layout::Same);
    }
    let inner = module.strip_prefix("transformer.h.").or(module.strip_prefix("model.layers."));
    let (layer, part) = inner.and_then(|inner| inner.split_once('.')).expect("a name of the configuration");
    let (_, other) = PARTS.iter().find(|(other, _)| *other == part).expect("a part of a block");
    (format!("blk.{layer}.{other}.{kind}"), layout(config, part, kind))
}

fn layout(config: &DecoderConfig, part: &str, kind: &str) -> Layout {
    match (config.family, part) {
        (Family::Llama, "self_attn.q_proj") => Layout::Interleaved { heads: config.heads },
        (Family::Llama, "self_attn.k_proj") => Layout::Interleaved { heads: config.kv_heads },
        (Family::Gpt2, part) if part.contains(".c_") && kind == "weight" => Layout::Transposed,
        _ => Layout::Same,
    }
}
