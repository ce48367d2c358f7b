//! `[lora]`

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, f32_is_normal, require};
use super::model::{Family, ModelConfig};

/// Low-rank adapters: with this section they alone are trained, and the weights of `model.pretrained` stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoraConfig {
    /// Rows of A and columns of B. Required.
    pub rank: usize,
    /// What an adapter adds is multiplied by `alpha / rank` (PEFT's `lora_alpha`). Default `2 * rank`.
    #[serde(default)]
    pub alpha: Option<f64>,
    /// The layers that get an adapter, in every block: Hugging Face names of modules, such as `q_proj`, or ends of their
    /// paths, such as `mlp.c_proj` (PEFT's `target_modules`). Default: all linear layers of the blocks.
    #[serde(default)]
    pub targets: Option<Vec<String>>,
}

/// A linear layer of every block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinearLayer {
    /// Path of its module in the block.
    pub(crate) path: &'static str,
    /// Its inputs.
    pub(crate) fan_in: usize,
    /// Its outputs.
    pub(crate) fan_out: usize,
}

impl LinearLayer {
    /// Those of a model, which need not be one that can be: sizes are held to the largest integer.
    pub(crate) fn all(model: &ModelConfig) -> Vec<Self> {
        let (d, f) = (model.hidden, model.ffn());
        let [q, kv] = [model.heads, model.kv_heads()].map(|heads| heads.saturating_mul(model.head_dim()));
        let layers = match model.family {
            Family::Gpt2 => vec![
                ("attn.c_attn", d, d.saturating_mul(3)),
                ("attn.c_proj", d, d),
                ("mlp.c_fc", d, f),
                ("mlp.c_proj", f, d),
            ],
            Family::Llama | Family::Qwen2 | Family::Qwen3 => vec![
                ("self_attn.q_proj", d, q),
                ("self_attn.k_proj", d, kv),
                ("self_attn.v_proj", d, kv),
                ("self_attn.o_proj", q, d),
                ("mlp.gate_proj", d, f),
                ("mlp.up_proj", d, f),
                ("mlp.down_proj", f, d),
            ],
        };
        layers.into_iter().map(|(path, fan_in, fan_out)| Self { path, fan_in, fan_out }).collect()
    }

    /// The last part of its path.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

/// Whether `target` names `module`: as a whole, or as the end of its path, as in PEFT.
pub(crate) fn is_target(target: &str, module: &str) -> bool {
    module.strip_suffix(target).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

impl LoraConfig {
    /// What the adapters' output is multiplied by, times the rank.
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(2.0 * self.rank as f64)
    }

    /// Checks the values against the model that gets the adapters.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub(crate) fn validate(&self, model: &ModelConfig) -> Result<(), ConfigError> {
        let layers = LinearLayer::all(model);
        let targets = self.targets.as_deref();
        let names = || {
            let paths: Vec<&str> = layers.iter().map(|layer| layer.path).collect();
            let family = model.family.name();
            format!("linear layers of a {family} block, or ends of their names: {}", paths.join(", "))
        };
        require(targets.is_none_or(|targets| !targets.is_empty()), "lora.targets", "[]", names())?;
        for target in targets.unwrap_or_default() {
            let known = layers.iter().any(|layer| is_target(target, layer.path));
            require(known, "lora.targets", format_args!("{target:?}"), names())?;
        }
        for LinearLayer { path, fan_in, fan_out } in layers {
            let adapted = targets.is_none_or(|targets| targets.iter().any(|target| is_target(target, path)));
            let most = fan_in.min(fan_out);
            let expected = format_args!("from 1 to {most}, the smaller side of {path} [{fan_out}, {fan_in}]");
            require(!adapted || (1..=most).contains(&self.rank), "lora.rank", self.rank, expected)?;
        }
        let alpha = self.alpha();
        let scale = alpha / self.rank as f64;
        let expected = "a positive number that f32 can hold, also divided by lora.rank";
        require(f32_is_normal(alpha) && f32_is_normal(scale), "lora.alpha", alpha, expected)
    }
}
