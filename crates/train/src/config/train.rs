//! `[train]`

use serde::{Deserialize, Serialize};
use thinwire_data::BatchSize;

use super::Dtype;
use super::error::{ConfigError, require, require_size};

/// How much is trained on, and in which pieces.
///
/// A step sees up to `sequence * micro_batch * micro_batches` tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Optimizer steps. Required, unless there are `epochs`; 0 until those have been counted.
    #[serde(default)]
    pub steps: u64,
    /// Passes over the training data, instead of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Tokens predicted in each sequence. Attention costs its square in time and memory. Default 256.
    #[serde(default = "defaults::sequence")]
    pub sequence: usize,
    /// Sequences in a micro-batch, the unit that crosses a boundary. Activation memory grows with it. Default
    /// 8.
    #[serde(default = "defaults::micro_batch")]
    pub micro_batch: usize,
    /// Micro-batches in a step, whose gradients are added up. More of them fill the pipeline better. Default
    /// 4.
    #[serde(default = "defaults::micro_batches")]
    pub micro_batches: usize,
    /// What is computed in. Default `f32`.
    #[serde(default)]
    pub dtype: Dtype,
    /// Whether only the inputs of the blocks are kept between forward and backward pass, and the blocks run twice: less
    /// memory, about a third more time, the same bits. Each machine may have its own. Default false.
    #[serde(default)]
    pub gradient_checkpointing: bool,
}

mod defaults {
    pub(super) fn sequence() -> usize {
        256
    }
    pub(super) fn micro_batch() -> usize {
        8
    }
    pub(super) fn micro_batches() -> usize {
        4
    }
}

impl TrainConfig {
    /// Turns epochs into steps.
    ///
    /// # Errors
    /// They are more than a configuration can say: TOML's integers are signed.
    pub(crate) fn count_steps(&mut self, steps_per_epoch: u64) -> Result<(), ConfigError> {
        if let Some(epochs) = self.epochs.take() {
            let most = i64::MAX.cast_unsigned() / steps_per_epoch.max(1);
            let expected = format_args!("at most {most}: an epoch of this data has {steps_per_epoch} steps");
            require(epochs <= most, "train.epochs", epochs, expected)?;
            self.steps = epochs * steps_per_epoch;
        }
        Ok(())
    }

    /// The size of a step's batches.
    pub fn batch_size(&self) -> BatchSize {
        let Self { sequence, micro_batch, micro_batches, .. } = *self;
        BatchSize { sequence, micro_batch, micro_batches }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        match self.epochs {
            None => require(self.steps >= 1, "train.steps", self.steps, "at least 1, or train.epochs")?,
            Some(epochs) => {
                require(epochs >= 1, "train.epochs", epochs, "at least 1")?;
                require(self.steps == 0, "train.steps", self.steps, "none beside train.epochs")?;
            }
        }
        require_size("train.sequence", self.sequence)?;
        require_size("train.micro_batch", self.micro_batch)?;
        require_size("train.micro_batches", self.micro_batches)
    }
}
