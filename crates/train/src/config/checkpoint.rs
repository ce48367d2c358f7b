//! `[checkpoint]`

use serde::{Deserialize, Serialize};

/// When checkpoints are written, and how many stay. One takes 12 bytes for each parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointConfig {
    /// Steps between checkpoints; one is always written at the end. 0 = only that one. Default 0.
    pub every: u64,
    /// Newest checkpoints to keep. 0 = all. Default 2.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every: 0, keep: 2 }
    }
}
