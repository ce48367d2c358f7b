//! `[optimizer]`

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, f32_is_normal, require};

/// `AdamW` (Loshchilov and Hutter, 2019) with f32 state: 8 bytes for each parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptimizerConfig {
    /// Peak learning rate. Default 3e-4.
    pub learning_rate: f64,
    /// Decay of the gradient's running mean. Default 0.9.
    pub beta1: f64,
    /// Decay of the squared gradient's running mean. Default 0.95.
    pub beta2: f64,
    /// Added to the denominator. Default 1e-8.
    pub epsilon: f64,
    /// Decoupled weight decay, on matrices only. Default 0.1.
    pub weight_decay: f64,
    /// Largest norm of the whole model's gradient; larger ones are scaled down to it. 0 = off. Default 1.
    pub clip_norm: f64,
    /// Shape of the learning rate after the warm-up. Default `"cosine"`.
    pub schedule: LearningRateSchedule,
    /// Steps in which the learning rate rises linearly from 0 to its peak. Default 100.
    pub warmup_steps: u64,
    /// Learning rate at the last step, as a part of the peak. Default 0.1.
    pub final_ratio: f64,
}

/// Shape of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LearningRateSchedule {
    /// Half a cosine wave down to `final_ratio`.
    Cosine,
    /// A straight line down to `final_ratio`.
    Linear,
    /// The peak, to the end.
    Constant,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 3e-4,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.1,
            clip_norm: 1.0,
            schedule: LearningRateSchedule::Cosine,
            warmup_steps: 100,
            final_ratio: 0.1,
        }
    }
}

impl OptimizerConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        // The optimizer computes in f32: what counts is the value there.
        let positive = |key, value: f64| {
            require(f32_is_normal(value), key, value, "a positive number that f32 can hold")
        };
        let not_negative = |key, value: f64| {
            require(
                value == 0.0 || f32_is_normal(value),
                key,
                value,
                "0, or a positive number that f32 can hold",
            )
        };
        let decay = |key, value: f64| {
            let valid = value >= 0.0 && (value as f32) < 1.0;
            require(valid, key, value, "a number of at least 0 that is below 1 in f32 too")
        };
        positive("optimizer.learning_rate", self.learning_rate)?;
        decay("optimizer.beta1", self.beta1)?;
        decay("optimizer.beta2", self.beta2)?;
        positive("optimizer.epsilon", self.epsilon)?;
        not_negative("optimizer.weight_decay", self.weight_decay)?;
        not_negative("optimizer.clip_norm", self.clip_norm)?;
        require(
            (0.0..=1.0).contains(&self.final_ratio),
            "optimizer.final_ratio",
            self.final_ratio,
            "a number from 0 to 1",
        )
    }
}
