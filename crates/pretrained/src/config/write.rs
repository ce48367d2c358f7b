//! `config.json` of the transformers library, on its way out.

use serde_json::{Value, json};

use super::{DecoderConfig, Family, Rope, RopeScaling};

/// The file's content. `dtype` is the name of the weights' number format, such as `float32`.
///
/// RoPE is written in both layouts, so that every release of transformers that knows the family reads it.
pub(crate) fn to_json(config: &DecoderConfig, dtype: &str) -> Value {
    let Some(rope) = config.rope else { return gpt2(config, dtype) };
    let mut json = json!({
        "architectures": [config.family.architecture()],
        "model_type": config.family.model_type(),
        "num_hidden_layers": config.layers,
        "hidden_size": config.hidden,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.ffn,
        "max_position_embeddings": config.context,
        "vocab_size": config.vocab,
        "tie_word_embeddings": config.tied,
        "rms_norm_eps": config.norm_eps,
        "hidden_act": "silu",
        "rope_theta": rope.theta,
        "rope_scaling": scaling(rope.scaling),
        "rope_parameters": parameters(rope),
        "torch_dtype": dtype,
    });
    match config.family {
        Family::Qwen2 | Family::Qwen3 => json["use_sliding_window"] = json!(false),
        Family::Gpt2 | Family::Llama => {}
    }
    json
}

fn gpt2(config: &DecoderConfig, dtype: &str) -> Value {
    json!({
        "architectures": [config.family.architecture()],
        "model_type": config.family.model_type(),
        "n_layer": config.layers,
        "n_embd": config.hidden,
        "n_head": config.heads,
        "n_inner": config.ffn,
        "n_positions": config.context,
        "vocab_size": config.vocab,
        "tie_word_embeddings": config.tied,
        "layer_norm_epsilon": config.norm_eps,
        "activation_function": "gelu_new",
        "torch_dtype": dtype,
    })
}

fn parameters(rope: Rope) -> Value {
    let mut json = match scaling(rope.scaling) {
        Value::Null => json!({ "rope_type": "default" }),
        scaling => scaling,
    };
    json["rope_theta"] = json!(rope.theta);
    json
}

fn scaling(scaling: RopeScaling) -> Value {
    match scaling {
        RopeScaling::None => Value::Null,
        RopeScaling::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low_freq_factor,
            "high_freq_factor": high_freq_factor,
            "original_max_position_embeddings": original_context,
        }),
    }
}
