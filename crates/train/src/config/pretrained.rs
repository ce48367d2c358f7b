//! `model.pretrained`: a model on disk says what `[model]` is.

use std::path::{Path, PathBuf};

use thinwire_pretrained::{DecoderConfig, Family as DecoderFamily, Pretrained, RopeScaling as Scaling};
use toml::{Table, Value};

use super::paths::join;
use super::{ConfigError, Family, ModelConfig, RopeScaling};

/// What a configuration leaves to the model that its `model.pretrained` names.
#[derive(Debug)]
pub(super) struct Start {
    path: PathBuf,
    model: ModelConfig,
}

impl Start {
    /// Opens the model, if `table` names one, and gives the keys that `table` does not have the model's values.
    /// Relative paths are relative to `folder`.
    ///
    /// # Errors
    /// The model cannot be opened.
    pub(super) fn fill(table: &mut Table, folder: &Path) -> Result<Option<Self>, ConfigError> {
        let Some(section) = table.get_mut("model").and_then(Value::as_table_mut) else { return Ok(None) };
        let Some(path) = section.get("pretrained").and_then(Value::as_str) else { return Ok(None) };
        let path = join(folder, Path::new(path));
        let opened =
            Pretrained::open(&path).map_err(|source| ConfigError::Pretrained { source: Box::new(source) })?;
        let model = ModelConfig { pretrained: Some(path.clone()), ..ModelConfig::from(opened.config()) };
        section.remove("pretrained");
        for (key, value) in values(&model)? {
            section.entry(key).or_insert(value);
        }
        if let Value::Table(data) = table.entry("data").or_insert_with(|| Table::new().into()) {
            let tokenizer = Value::String(path.display().to_string());
            data.entry("tokenizer").or_insert(tokenizer);
        }
        Ok(Some(Self { path, model }))
    }

    /// Compares what was written in the configuration with the model. A tied model may be trained untied, but not with
    /// `adapters`: its head then starts as a copy of the embedding.
    ///
    /// # Errors
    /// The first key that differs.
    pub(super) fn check(&self, written: &ModelConfig, adapters: bool) -> Result<(), ConfigError> {
        let tie_embeddings = self.model.tie_embeddings && (adapters || written.tie_embeddings);
        let model = ModelConfig { tie_embeddings, ..self.model.clone() };
        let (expected, found) = (values(&model)?, values(written)?);
        let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
        match expected.keys().chain(found.keys()).find(|key| expected.get(*key) != found.get(*key)) {
            None => Ok(()),
            Some(key) => Err(ConfigError::Invalid {
                key: format!("model.{key}"),
                value: shown(found.get(key)),
                expected: format!("{}, as in {}", shown(expected.get(key)), self.path.display()),
            }),
        }
    }
}

fn values(model: &ModelConfig) -> Result<Table, ConfigError> {
    Table::try_from(model).map_err(ConfigError::Write)
}

impl From<&DecoderConfig> for ModelConfig {
    fn from(config: &DecoderConfig) -> Self {
        Self {
            pretrained: None,
            family: match config.family {
                DecoderFamily::Gpt2 => Family::Gpt2,
                DecoderFamily::Llama => Family::Llama,
                DecoderFamily::Qwen2 => Family::Qwen2,
                DecoderFamily::Qwen3 => Family::Qwen3,
            },
            layers: config.layers,
            hidden: config.hidden,
            heads: config.heads,
            head_dim: Some(config.head_dim),
            kv_heads: Some(config.kv_heads),
            ffn: Some(config.ffn),
            context: config.context,
            tie_embeddings: config.tied,
            norm_eps: config.norm_eps,
            rope_theta: config.rope.map(|rope| rope.theta),
            rope_scaling: config.rope.and_then(|rope| match rope.scaling {
                Scaling::None => None,
                Scaling::Linear { factor } => Some(RopeScaling::Linear { factor }),
                Scaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                    Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context })
                }
            }),
            vocab: Some(config.vocab),
        }
    }
}
