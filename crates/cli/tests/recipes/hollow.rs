//! Pretrained models of real shapes, without their weights.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thinwire_pretrained::{DecoderConfig, Family, Rope, RopeScaling};

#[derive(Clone, Copy)]
pub(crate) enum Start {
    Gpt2Xl,
    Qwen25,
    SmolLm2,
}

impl Start {
    /// The model's folder below `parent`, its weights a hole of the right size.
    pub(crate) fn write(self, parent: &Path) -> PathBuf {
        let (config, model) = self.describe();
        let folder = parent.join(config["_name_or_path"].as_str().unwrap());
        if folder.exists() {
            return folder;
        }
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let mut end = 0;
        let header: BTreeMap<String, Value> = model
            .tensors()
            .iter()
            .map(|tensor| {
                let begin = end;
                end += 2 * tensor.len() as u64;
                let info = json!({ "dtype": "BF16", "shape": tensor.shape, "data_offsets": [begin, end] });
                (tensor.name.clone(), info)
            })
            .collect();
        let header = serde_json::to_vec(&header).unwrap();
        let mut file = File::create(folder.join("model.safetensors")).unwrap();
        file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
        file.write_all(&header).unwrap();
        file.set_len(8 + header.len() as u64 + end).unwrap();
        folder
    }

    /// Its `config.json`, after the one published, and the same in our words.
    fn describe(self) -> (Value, DecoderConfig) {
        let rope = |theta| Some(Rope { theta, scaling: RopeScaling::None });
        match self {
            Self::Gpt2Xl => (
                json!({
                    "_name_or_path": "gpt2-xl", "model_type": "gpt2", "activation_function": "gelu_new",
                    "layer_norm_epsilon": 1e-5, "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48,
                    "n_positions": 1024, "vocab_size": 50257,
                }),
                DecoderConfig {
                    family: Family::Gpt2,
                    layers: 48,
                    hidden: 1600,
                    heads: 25,
                    kv_heads: 25,
                    head_dim: 64,
                    ffn: 6400,
                    context: 1024,
                    vocab: 50_257,
                    tied: true,
                    norm_eps: 1e-5,
                    rope: None,
                },
            ),
            Self::Qwen25 => (
                json!({
                    "_name_or_path": "qwen2.5-3b", "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 2048,
                    "intermediate_size": 11008, "max_position_embeddings": 32768, "num_attention_heads": 16,
                    "num_hidden_layers": 36, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
                    "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151_936,
                }),
                DecoderConfig {
                    family: Family::Qwen2,
                    layers: 36,
                    hidden: 2048,
                    heads: 16,
                    kv_heads: 2,
                    head_dim: 128,
                    ffn: 11_008,
                    context: 32_768,
                    vocab: 151_936,
                    tied: true,
                    norm_eps: 1e-6,
                    rope: rope(1e6),
                },
            ),
            Self::SmolLm2 => (
                json!({
                    "_name_or_path": "smollm2-135m", "model_type": "llama", "hidden_act": "silu", "hidden_size": 576,
                    "intermediate_size": 1536, "max_position_embeddings": 8192, "num_attention_heads": 9,
                    "num_hidden_layers": 30, "num_key_value_heads": 3, "rms_norm_eps": 1e-5, "rope_theta": 1e5,
                    "tie_word_embeddings": true, "vocab_size": 49_152,
                }),
                DecoderConfig {
                    family: Family::Llama,
                    layers: 30,
                    hidden: 576,
                    heads: 9,
                    kv_heads: 3,
                    head_dim: 64,
                    ffn: 1536,
                    context: 8192,
                    vocab: 49_152,
                    tied: true,
                    norm_eps: 1e-5,
                    rope: rope(1e5),
                },
            ),
        }
    }
}
