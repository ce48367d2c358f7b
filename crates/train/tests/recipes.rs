//! Every recipe of the repository, checked against models of the real shapes whose weights are holes in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thinwire_pretrained::{DecoderConfig, Family, Rope, RopeScaling};
use thinwire_train::config::{Config, Unit};
use thinwire_train::run::Preview;

/// What a recipe comes to: its file in `recipes`; values in the parameters, those of a tied matrix once; stages; sequences of a
/// step and tokens of a sequence; the model it starts from; the vocabulary of a tokenizer that is not at hand.
type Expected = (&'static str, u64, usize, [usize; 2], Option<Start>, Option<usize>);

#[derive(Clone, Copy)]
enum Start {
    Gpt2Xl,
    Qwen25,
    SmolLm2,
}

const RECIPES: [Expected; 13] = [
    ("quickstart.toml", 3_082_496, 2, [4, 256], None, None),
    ("paper/gpt2-xl-wikitext-2.toml", 1_557_611_200, 8, [32, 1024], Some(Start::Gpt2Xl), None),
    ("paper/gpt2-xl-arxiv21.toml", 1_557_611_200, 8, [32, 1024], Some(Start::Gpt2Xl), None),
    ("paper/qwen2.5-3b-magicoder.toml", 3_085_938_688, 8, [32, 1024], Some(Start::Qwen25), None),
    ("paper/qwen2.5-3b-open-platypus.toml", 3_085_938_688, 8, [32, 1024], Some(Start::Qwen25), None),
    ("paper/llama-3.2-1b-slimpajama.toml", 1_235_814_400, 4, [256, 4096], None, Some(128_256)),
    ("paper/llama-8b-proof-pile.toml", 8_030_261_248, 4, [32, 4096], None, Some(128_256)),
    ("small/prose.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/passages.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/instructions.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/instructions-lora.toml", 139_399_488, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/pretraining.toml", 8_755_392, 4, [8, 256], None, None),
    ("small/pretraining-wide.toml", 27_533_824, 4, [8, 256], None, None),
];

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes")
}

#[test]
fn every_recipe_resolves() {
    let folder = tempfile::tempdir().unwrap();
    for (recipe, parameters, stages, [samples, tokens], start, vocab) in RECIPES {
        let mut sets = vec!["data.tokenizer=byte".to_owned()];
        if let Some(start) = start {
            sets.push(format!("model.pretrained={}", start.write(folder.path()).display()));
        }
        sets.extend(vocab.map(|vocab| format!("model.vocab={vocab}")));
        let config = Config::load(&recipes().join(recipe), &sets)
            .unwrap_or_else(|error| panic!("{recipe}: {error:?}"));
        let Preview { config, architecture, map, .. } = Preview::load(config).unwrap();
        let units =
            std::iter::once(Unit::Embed).chain((0..architecture.layers).map(Unit::Block)).chain([Unit::Head]);
        let tied = if architecture.tied { architecture.vocab * architecture.hidden } else { 0 };
        let found = units.map(|unit| architecture.parameters(unit)).sum::<u64>() - tied as u64;
        assert_eq!(found, parameters, "{recipe}");
        assert_eq!(config.pipeline.stages, stages, "{recipe}");
        assert!(map.is_none_or(|map| map.stages().len() == stages), "{recipe}");
        let train = &config.train;
        assert_eq!([train.micro_batch * train.micro_batches, train.sequence], [samples, tokens], "{recipe}");
        let forward = match start {
            Some(Start::SmolLm2) => "tah:g=64,a=64,p=1,hi=4,lo=3,tau=0",
            _ => "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2",
        };
        assert_eq!(config.pipeline.forward.to_string(), forward, "{recipe}");
        let tied = if architecture.trains_tied() { "fixed:bits=8,group=64" } else { "raw:dtype=f32" };
        assert_eq!(config.pipeline.tied.to_string(), tied, "{recipe}");
    }
}

#[test]
fn no_recipe_is_left_out() {
    let mut found: Vec<String> = ["", "paper", "small"]
        .iter()
        .flat_map(|folder| fs::read_dir(recipes().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path().strip_prefix(recipes()).unwrap().to_str().unwrap().to_owned())
        .filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "toml"))
        .collect();
    let mut tested: Vec<&str> = RECIPES.iter().map(|expected| expected.0).collect();
    found.sort();
    tested.sort_unstable();
    assert_eq!(found, tested);
}

impl Start {
    /// The model's folder below `parent`, its weights a hole of the right size.
    fn write(self, parent: &Path) -> PathBuf {
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
