//! `config.json` of the transformers library, on its way in.

use std::path::Path;

use serde_json::{Value, json};

use super::fields::Fields;
use super::{DecoderConfig, Family, Rope, RopeScaling};
use crate::Error;

/// The configuration in the JSON `value` of the file `path`. Absent fields have the defaults of transformers.
///
/// # Errors
/// A size is missing or impossible, or a field asks for another computation than the supported ones.
pub(crate) fn read(path: &Path, value: &Value) -> Result<DecoderConfig, Error> {
    let fields = Fields::new(path, "", value)?;
    let family = family(fields)?;
    refuse_other_computation(fields, family)?;
    let config = match family {
        Family::Gpt2 => gpt2(fields)?,
        Family::Llama | Family::Qwen2 | Family::Qwen3 => rotary(fields, family)?,
    };
    config.validate(path)?;
    Ok(config)
}

fn family(fields: Fields<'_>) -> Result<Family, Error> {
    let name = fields.text("model_type")?;
    let name = fields.needed("model_type", name)?;
    let family = DecoderConfig::family_named(name)
        .ok_or_else(|| fields.refuse("model_type", &DecoderConfig::supported_families()))?;
    // A classifier has the same model type and another head.
    fields.only("architectures", &[json!([family.architecture()])])?;
    Ok(family)
}

/// Fields that change what is computed may have only the values that are computed here.
fn refuse_other_computation(fields: Fields<'_>, family: Family) -> Result<(), Error> {
    let of_all = [
        ("quantization_config", json!([])),
        ("auto_map", json!([])),
        ("is_encoder_decoder", json!([false])),
        ("add_cross_attention", json!([false])),
        ("partial_rotary_factor", json!([1])),
        ("num_experts", json!([0])),
        ("num_local_experts", json!([0])),
        ("attn_logit_softcapping", json!([])),
        ("final_logit_softcapping", json!([])),
    ];
    let of_gpt2 = [
        ("activation_function", json!(["gelu_new", "gelu_pytorch_tanh"])),
        ("scale_attn_weights", json!([true])),
        ("scale_attn_by_inverse_layer_idx", json!([false])),
        ("reorder_and_upcast_attn", json!([false])),
    ];
    let of_rotary = [
        ("hidden_act", json!(["silu", "swish"])),
        ("mlp_bias", json!([false])),
        ("use_sliding_window", json!([false])),
        ("pretraining_tp", json!([1])),
        ("rope_interleaved", json!([false])),
    ];
    let of_family: &[(&str, Value)] = if family == Family::Gpt2 { &of_gpt2 } else { &of_rotary };
    for (name, supported) in of_all.iter().chain(of_family) {
        fields.only(name, supported.as_array().map_or(&[], Vec::as_slice))?;
    }
    match family {
        Family::Gpt2 => {}
        // Qwen2 has its biases in any case, and no such field.
        Family::Qwen2 => fields.only("attention_bias", &[json!(true)])?,
        Family::Llama | Family::Qwen3 => fields.only("attention_bias", &[json!(false)])?,
    }
    // Qwen's configurations name a window and switch it off; where there is no switch, a window is one.
    if fields.get("use_sliding_window").is_none() {
        fields.only("sliding_window", &[])?;
    }
    let full = |kinds: &Value| {
        kinds.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "full_attention"))
    };
    match fields.get("layer_types") {
        Some(kinds) if !full(kinds) => Err(fields.refuse("layer_types", "\"full_attention\" everywhere")),
        _ => Ok(()),
    }
}

fn gpt2(fields: Fields<'_>) -> Result<DecoderConfig, Error> {
    let size = |name| fields.needed(name, fields.size(name)?);
    let (hidden, heads) = (size("n_embd")?, size("n_head")?);
    Ok(DecoderConfig {
        family: Family::Gpt2,
        layers: size("n_layer")?,
        hidden,
        heads,
        kv_heads: heads,
        head_dim: head_dim(fields, hidden, heads)?,
        ffn: fields.size("n_inner")?.unwrap_or(hidden.saturating_mul(4)),
        context: size("n_positions")?,
        vocab: size("vocab_size")?,
        tied: fields.flag("tie_word_embeddings")?.unwrap_or(true),
        norm_eps: fields.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        rope: None,
    })
}

fn rotary(fields: Fields<'_>, family: Family) -> Result<DecoderConfig, Error> {
    let size = |name| fields.needed(name, fields.size(name)?);
    let (hidden, heads) = (size("hidden_size")?, size("num_attention_heads")?);
    let head_dim = match (fields.size("head_dim")?, family) {
        (Some(size), _) => size,
        (None, Family::Qwen3) => 128,
        (None, _) => head_dim(fields, hidden, heads)?,
    };
    Ok(DecoderConfig {
        family,
        layers: size("num_hidden_layers")?,
        hidden,
        heads,
        kv_heads: fields.size("num_key_value_heads")?.unwrap_or(heads),
        head_dim,
        ffn: size("intermediate_size")?,
        context: size("max_position_embeddings")?,
        vocab: size("vocab_size")?,
        tied: fields.flag("tie_word_embeddings")?.unwrap_or(false),
        norm_eps: fields.number("rms_norm_eps")?.unwrap_or(1e-6),
        rope: Some(rope(fields)?),
    })
}

fn head_dim(fields: Fields<'_>, hidden: usize, heads: usize) -> Result<usize, Error> {
    match hidden.checked_rem(heads) {
        Some(0) => Ok(hidden / heads),
        _ => {
            let expected = format_args!("a divisor of {hidden}");
            Err(Error::mismatch(fields.path(), "number of heads", expected, heads))
        }
    }
}

/// From `rope_parameters` (transformers 5), or from `rope_theta` and `rope_scaling`.
fn rope(fields: Fields<'_>) -> Result<Rope, Error> {
    let (name, prefix) = match fields.get("rope_parameters") {
        Some(_) => ("rope_parameters", "rope_parameters."),
        None => ("rope_scaling", "rope_scaling."),
    };
    let theta = fields.number("rope_theta")?;
    let Some(value) = fields.get(name) else {
        return Ok(Rope { theta: theta.unwrap_or(10_000.0), scaling: RopeScaling::None });
    };
    let inner = Fields::new(fields.path(), prefix, value)?;
    inner.only("partial_rotary_factor", &[json!(1)])?;
    let theta = inner.number("rope_theta")?.or(theta).unwrap_or(10_000.0);
    Ok(Rope { theta, scaling: scaling(inner)? })
}

fn scaling(fields: Fields<'_>) -> Result<RopeScaling, Error> {
    let name = if fields.get("rope_type").is_some() { "rope_type" } else { "type" };
    let kind = fields.text(name)?;
    let number = |name| fields.needed(name, fields.number(name)?);
    match fields.needed("rope_type", kind)? {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: number("factor")? }),
        "llama3" => {
            let context = "original_max_position_embeddings";
            Ok(RopeScaling::Llama3 {
                factor: number("factor")?,
                low_freq_factor: number("low_freq_factor")?,
                high_freq_factor: number("high_freq_factor")?,
                original_context: fields.needed(context, fields.size(context)?)?,
            })
        }
        _ => Err(fields.refuse(name, "\"default\", \"linear\", \"llama3\"")),
    }
}
