//! What a `config.json` may say.

use std::fs;

use serde_json::{Value, json};
use thinwire_pretrained::{DecoderConfig, Error, Pretrained, RopeScaling};

use crate::support::copy;

/// Opens a small model after `change` to its configuration.
fn open(name: &str, change: &Value) -> Result<DecoderConfig, Error> {
    let folder = copy(name);
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (key, value) in change.as_object().unwrap() {
        config[key] = value.clone();
    }
    fs::write(&path, config.to_string()).unwrap();
    Pretrained::open(folder.path()).map(|model| model.config().clone())
}

#[test]
fn other_computations_are_refused() {
    let cases = [
        ("gpt2", json!({ "activation_function": "relu" }), "`activation_function` is \"relu\""),
        (
            "gpt2",
            json!({ "scale_attn_by_inverse_layer_idx": true }),
            "`scale_attn_by_inverse_layer_idx` is true",
        ),
        ("gpt2", json!({ "reorder_and_upcast_attn": true }), "`reorder_and_upcast_attn` is true"),
        ("gpt2", json!({ "scale_attn_weights": false }), "supported: true"),
        ("gpt2", json!({ "add_cross_attention": true }), "`add_cross_attention` is true"),
        ("smollm", json!({ "hidden_act": "gelu" }), "`hidden_act` is \"gelu\", which is not supported"),
        ("smollm", json!({ "attention_bias": true }), "`attention_bias` is true"),
        ("smollm", json!({ "mlp_bias": true }), "`mlp_bias` is true"),
        ("smollm", json!({ "pretraining_tp": 2 }), "`pretraining_tp` is 2"),
        ("smollm", json!({ "partial_rotary_factor": 0.5 }), "`partial_rotary_factor` is 0.5"),
        ("smollm", json!({ "sliding_window": 4096 }), "`sliding_window` is 4096"),
        ("smollm", json!({ "quantization_config": { "bits": 4 } }), "`quantization_config` is {\"bits\":4}"),
        ("smollm", json!({ "model_type": "mamba" }), "`model_type` is \"mamba\""),
        ("smollm", json!({ "model_type": null }), "field `model_type`: expected a value, found none"),
        ("smollm", json!({ "architectures": ["LlamaForSequenceClassification"] }), "`architectures` is"),
        ("qwen2", json!({ "use_sliding_window": true }), "`use_sliding_window` is true"),
        ("qwen2", json!({ "layer_types": ["full_attention", "sliding_attention"] }), "`layer_types` is"),
        ("qwen3", json!({ "attention_bias": true }), "`attention_bias` is true"),
        (
            "qwen2",
            json!({ "rope_parameters": { "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0 } }),
            "`rope_parameters.rope_type` is \"yarn\"",
        ),
        (
            "qwen2",
            json!({ "rope_parameters": null, "rope_scaling": { "type": "dynamic", "factor": 2.0 } }),
            "`rope_scaling.type` is \"dynamic\"",
        ),
    ];
    for (name, change, expected) in cases {
        let error = open(name, &change).unwrap_err().to_string();
        assert!(error.contains("config.json") && error.contains(expected), "{change}: {error}");
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let cases = [
        (json!({ "hidden_size": null }), "field `hidden_size`: expected a value, found none"),
        (json!({ "hidden_size": "16" }), "field `hidden_size`: expected a whole number, found \"16\""),
        (json!({ "num_hidden_layers": 2_000_000_000 }), "number of layers: expected 1 to 4096"),
        (json!({ "num_hidden_layers": 0 }), "number of layers: expected 1 to 4096, found 0"),
        (json!({ "num_attention_heads": 0, "head_dim": null }), "number of heads: expected a divisor of 16"),
        (json!({ "num_key_value_heads": 3 }), "expected a divisor of 4, found 3"),
        (json!({ "head_dim": 3 }), "size of a head: expected an even number, found 3"),
        (json!({ "intermediate_size": u64::MAX }), "size of the feed-forward layer"),
        (json!({ "rms_norm_eps": 0.0 }), "epsilon of the norms"),
        (json!({ "rope_parameters": [] }), "rope_parameters: expected a JSON object, found []"),
    ];
    for (change, expected) in cases {
        let error = open("smollm", &change).unwrap_err().to_string();
        assert!(error.contains(expected), "{change}: {error}");
    }
}

#[test]
fn harmless_fields_are_ignored() {
    let change = json!({
        "attention_dropout": 0.1, "use_cache": false, "_name_or_path": "x", "initializer_range": 1.0,
        "sliding_window": 4096, "use_sliding_window": false, "rope_scaling": null, "made_up": [1],
    });
    assert_eq!(open("qwen2", &change).unwrap(), open("qwen2", &json!({})).unwrap());
}

/// The layout of transformers 4.
#[test]
fn rope_in_the_older_layout() {
    let old = json!({ "rope_parameters": null, "rope_theta": 250_000.0, "rope_scaling": {
        "type": "linear", "factor": 2.0,
    } });
    let rope = open("smollm", &old).unwrap().rope.unwrap();
    assert_eq!((rope.theta, rope.scaling), (250_000.0, RopeScaling::Linear { factor: 2.0 }));

    let old = json!({ "rope_parameters": null, "rope_theta": 500_000.0, "rope_scaling": {
        "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3",
    } });
    let expected = RopeScaling::Llama3 {
        factor: 32.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    assert_eq!(open("smollm", &old).unwrap().rope.unwrap().scaling, expected);

    let plain = json!({ "rope_parameters": null, "rope_scaling": null });
    let rope = open("smollm", &plain).unwrap().rope.unwrap();
    assert_eq!((rope.theta, rope.scaling), (10_000.0, RopeScaling::None));
}
