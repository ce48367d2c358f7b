//! `[metrics]`

use serde::{Deserialize, Serialize};

/// What is measured and written beside the JSON lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricsConfig {
    /// Measure the codecs' error on every Nth micro-batch, at the cost of decoding it once more. 0 = never.
    /// Default 8.
    pub error_every: u64,
    /// Write a Chrome trace: about 1 kB for each micro-batch and stage. Default false.
    pub trace: bool,
    /// Write `TensorBoard` events. Default true.
    pub tensorboard: bool,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { error_every: 8, trace: false, tensorboard: true }
    }
}
