//! `[model.rope_scaling]`

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, f32_is_normal, require, require_size};

/// How the rotary frequencies of a model that was pretrained on shorter sequences are slowed down. In a file, the table
/// `{ type = "linear", factor = 4.0 }` or `{ type = "llama3", factor = 8.0, low_freq_factor = 1.0, high_freq_factor =
/// 4.0, original_context = 8192 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub enum RopeScaling {
    /// Every frequency divided by `factor` (Chen et al., 2023).
    Linear {
        /// At least 1.
        factor: f64,
    },
    /// Only long waves are slowed (Llama 3.1): those that turn less than `low_freq_factor` times in the original
    /// context by `factor`, those that turn more than `high_freq_factor` times not at all, the ones between by a
    /// mixture.
    Llama3 {
        /// At least 1.
        factor: f64,
        /// Turns in the original context up to which a wave is slowed in full.
        low_freq_factor: f64,
        /// Turns from which it is left alone; more than `low_freq_factor`.
        high_freq_factor: f64,
        /// Tokens of the sequences of pretraining.
        original_context: usize,
    },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Keys {
    #[serde(rename = "type")]
    kind: Kind,
    factor: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_context: Option<usize>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Linear,
    Llama3,
}

impl TryFrom<Keys> for RopeScaling {
    type Error = &'static str;

    fn try_from(keys: Keys) -> Result<Self, Self::Error> {
        let Keys { kind, factor, low_freq_factor, high_freq_factor, original_context } = keys;
        match (kind, low_freq_factor, high_freq_factor, original_context) {
            (Kind::Linear, None, None, None) => Ok(Self::Linear { factor }),
            (Kind::Linear, ..) => Err("type linear has a factor and nothing else"),
            (Kind::Llama3, Some(low_freq_factor), Some(high_freq_factor), Some(original_context)) => {
                Ok(Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context })
            }
            (Kind::Llama3, ..) => {
                Err("type llama3 needs low_freq_factor, high_freq_factor and original_context")
            }
        }
    }
}

impl From<RopeScaling> for Keys {
    fn from(scaling: RopeScaling) -> Self {
        match scaling {
            RopeScaling::Linear { factor } => Self {
                kind: Kind::Linear,
                factor,
                low_freq_factor: None,
                high_freq_factor: None,
                original_context: None,
            },
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => Self {
                kind: Kind::Llama3,
                factor,
                low_freq_factor: Some(low_freq_factor),
                high_freq_factor: Some(high_freq_factor),
                original_context: Some(original_context),
            },
        }
    }
}

impl RopeScaling {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The first one that no model can have.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let (Self::Linear { factor } | Self::Llama3 { factor, .. }) = *self;
        require(
            factor >= 1.0 && f32_is_normal(factor),
            "model.rope_scaling.factor",
            factor,
            "a number of at least 1 that f32 can hold",
        )?;
        let Self::Llama3 { low_freq_factor: low, high_freq_factor: high, original_context, .. } = *self
        else {
            return Ok(());
        };
        require(
            f32_is_normal(low),
            "model.rope_scaling.low_freq_factor",
            low,
            "a positive number that f32 can hold",
        )?;
        require(
            high > low && f32_is_normal(high),
            "model.rope_scaling.high_freq_factor",
            high,
            format_args!("a number above low_freq_factor = {low} that f32 can hold"),
        )?;
        require_size("model.rope_scaling.original_context", original_context)
    }
}
