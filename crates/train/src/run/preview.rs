//! What a configuration comes to, told without its texts.

use burn::tensor::Device;

use super::RunError;
use crate::config::{Config, ConfigError, LayerMap};
use crate::data::Tokenizer;
use crate::model::Architecture;
use crate::plan::{self, UnitCost};
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
    /// The tokenizer cannot be read or has more ids than the model; the layer map is no partition.
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
        Ok(Self { config, architecture, map, tokenizer })
    }

    /// Measures each unit on this machine's processor, with the run's micro-batches, and splits the model by that.
    ///
    /// # Errors
    /// There are more stages than units.
    pub fn measure(&self) -> Result<(Vec<UnitCost>, LayerMap), RunError> {
        let train = &self.config.train;
        let (samples, tokens) = (train.micro_batch, train.sequence);
        let costs = plan::measure(&self.architecture, samples, tokens, train.dtype, &Device::flex());
        let seconds: Vec<f64> = costs.iter().map(UnitCost::seconds).collect();
        let map = plan::partition(&seconds, self.config.pipeline.stages)?;
        Ok((costs, map))
    }
}
