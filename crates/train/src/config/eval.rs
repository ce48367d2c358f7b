//! `[eval]`

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, require_size};

/// Evaluation on the held-out text, through the same codecs as training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvalConfig {
    /// Steps between evaluations; one is always made at the end. 0 = only that one. Default 0.
    pub every: u64,
    /// Most tokens to evaluate on, from the start of the text; the cost of an evaluation is a forward pass
    /// over them. 0 = the whole text. Default 0.
    pub tokens: usize,
    /// Sequences in a micro-batch. Default 8.
    pub micro_batch: usize,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self { every: 0, tokens: 0, micro_batch: 8 }
    }
}

impl EvalConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        require_size("eval.micro_batch", self.micro_batch)
    }
}
