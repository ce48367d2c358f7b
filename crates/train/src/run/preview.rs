//! What a configuration comes to, told without its texts.

use std::num::NonZero;
use std::thread;

use super::RunError;
use crate::config::{Config, ConfigError, LayerMap};
use crate::data::Tokenizer;
use crate::model::{Architecture, Shard};
use crate::plan::{self, ModelTimes, Workload};
use crate::pretrained::load_tokenizer;

/// A run that is not started.
#[derive(Debug)]
pub struct Preview {
    /// The configuration, checked.
    pub config: Config,
    /// The model.
    pub architecture: Architecture,
    /// Who owns what; `None` as long as it is to be measured.
    pub map: Option<LayerMap>,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
}

impl Preview {
    /// Reads the tokenizer and works out the model and its split.
    ///
    /// # Errors
    /// The tokenizer cannot be read or has more ids than the model; the layer map is no partition; the model cannot be shared by
    /// so many ranks.
    pub fn load(config: Config) -> Result<Self, RunError> {
        let tokenizer = load_tokenizer(&config.data.tokenizer).map_err(RunError::Tokenizer)?;
        let vocab = config.model.vocab(tokenizer.vocab_size())?;
        let layers = config.model.layers;
        let map = match config.pipeline.manual_map(layers)? {
            None if config.pipeline.stages == 1 => {
                Some(LayerMap::from_counts(layers, &[layers + 2]).map_err(ConfigError::Layers)?)
            }
            map => map,
        };
        let architecture = Architecture::new(&config.model, vocab).with_lora(config.lora.as_ref());
        Shard::all(&architecture, config.tensor_parallel.ranks)?;
        Ok(Self { config, architecture, map, tokenizer })
    }

    /// Measures each unit with the run's micro-batches, on as many cores as a stage has where all are on this machine, and
    /// splits the model by that.
    ///
    /// # Errors
    /// There are more stages than units, or no threads.
    pub fn measure(&self) -> Result<(ModelTimes, LayerMap), RunError> {
        let Config { train, pipeline, .. } = &self.config;
        let layers = self.architecture.layers;
        let workload = Workload {
            samples: train.micro_batch,
            tokens: train.sequence,
            dtype: train.dtype,
            checkpointing: train.gradient_checkpointing,
            blocks: layers.div_ceil(pipeline.stages),
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (cores / pipeline.stages).max(1);
        let times = plan::measure_stages(&self.architecture, &workload, threads, 1)?.alone;
        let map = times.split(layers, pipeline.stages)?;
        Ok((times, map))
    }
}
