//! `[tensor_parallel]`

use serde::{Deserialize, Serialize};
use thinwire_collective::AllReduceSpec;

use super::ModelConfig;
use super::error::{ConfigError, require};

/// Into how many ranks every layer of a stage is split, and how they add up what each has computed.
///
/// Ranks are threads of the stage's process, whose waits have the pipeline's deadline. They change no checkpoint, so each
/// machine may have its own number, and a resumed run another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TensorParallelConfig {
    /// Ranks of each stage; divides the model's attention heads, query and key-value heads alike. Default 1.
    pub ranks: usize,
    /// How they add up activations, twice a block. Default `"exact"`.
    pub all_reduce: AllReduceSpec,
    /// How they add up the gradients of activations, twice a block. Default: as `all_reduce`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<AllReduceSpec>,
}

impl Default for TensorParallelConfig {
    fn default() -> Self {
        Self { ranks: 1, all_reduce: AllReduceSpec::default(), gradients: None }
    }
}

/// The most ranks of a stage: a group of threads has no more.
const MOST_RANKS: usize = 64;

impl TensorParallelConfig {
    /// How the gradients of activations are added up.
    pub fn gradients(&self) -> AllReduceSpec {
        self.gradients.unwrap_or(self.all_reduce)
    }

    pub(super) fn validate(&self, model: &ModelConfig) -> Result<(), ConfigError> {
        let (heads, kv_heads) = (model.heads, model.kv_heads());
        let divides = |ranks: usize| heads.is_multiple_of(ranks) && kv_heads.is_multiple_of(ranks);
        let allowed: Vec<String> =
            (1..=MOST_RANKS).filter(|&ranks| divides(ranks)).map(|ranks| ranks.to_string()).collect();
        let expected = format_args!(
            "one of {}, which divide model.heads = {heads} and model.kv_heads = {kv_heads}",
            allowed.join(", ")
        );
        let fits = self.ranks <= MOST_RANKS && divides(self.ranks);
        require(fits, "tensor_parallel.ranks", self.ranks, expected)
    }
}
