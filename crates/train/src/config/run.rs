//! `[run]`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the run writes, and what its random numbers start from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// Folder for checkpoints, metrics, traces and the resolved configuration. Required.
    pub dir: PathBuf,
    /// Seed of the initialization and of the data order. Default 0.
    #[serde(default)]
    pub seed: u64,
}
