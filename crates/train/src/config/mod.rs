//! The configuration of a run: one TOML file, a type for each of its sections.
//!
//! Unknown keys are refused, values are checked, and every error names the key, the value and what was
//! expected. Paths in the file are relative to the file's folder; [`Config::load`] makes them absolute.

mod bandwidth;
mod byte_size;
mod checkpoint;
mod data;
mod dtype;
mod error;
mod eval;
mod keys;
mod latency;
mod layer_map;
mod lora;
mod memory;
mod metrics;
mod model;
mod optimizer;
mod overrides;
pub mod paths;
mod pipeline;
mod pretrained;
mod rope_scaling;
mod run;
mod stage;
mod tensor_parallel;
mod text;
mod train;

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use bandwidth::{Bandwidth, BandwidthError};
pub use byte_size::{ByteSize, ByteSizeError};
pub use checkpoint::CheckpointConfig;
pub use data::{DataConfig, Sources};
pub use dtype::Dtype;
pub use error::{ConfigError, require};
pub use eval::EvalConfig;
pub use latency::{Latency, LatencyError};
pub use layer_map::{LayerMap, LayerMapError, StageUnits, Unit};
pub use lora::LoraConfig;
pub(crate) use lora::{LinearLayer, is_target};
pub use memory::{MemoryConfig, MemoryPlace};
pub use metrics::MetricsConfig;
pub use model::{Family, ModelConfig};
pub use optimizer::{LearningRateSchedule, OptimizerConfig};
pub use pipeline::{
    BoundaryCodecs, BoundaryConfig, LayerPlan, NonFinitePolicy, PipelineConfig, PipelineSchedule,
};
pub use rope_scaling::RopeScaling;
pub use run::RunConfig;
pub use stage::StageConfig;
pub use tensor_parallel::TensorParallelConfig;
pub use thinwire_data::TokenizerSource;
pub use train::TrainConfig;

use pretrained::Start;

/// Everything a run is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// `[run]`
    pub run: RunConfig,
    /// `[model]`
    pub model: ModelConfig,
    /// `[lora]`
    #[serde(default)]
    pub lora: Option<LoraConfig>,
    /// `[data]`
    pub data: DataConfig,
    /// `[train]`
    pub train: TrainConfig,
    /// `[optimizer]`
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// `[eval]`
    #[serde(default)]
    pub eval: EvalConfig,
    /// `[pipeline]` and `[[pipeline.boundary]]`
    #[serde(default)]
    pub pipeline: PipelineConfig,
    /// `[tensor_parallel]`
    #[serde(default)]
    pub tensor_parallel: TensorParallelConfig,
    /// `[[stage]]`: where each stage runs, in order; empty when the driver starts them all on this machine.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageConfig>,
    /// `[checkpoint]`
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
    /// `[metrics]`
    #[serde(default)]
    pub metrics: MetricsConfig,
}

impl Config {
    /// Reads `path`, applies `overrides` (`section.key=value`, the value in TOML or else taken as a string),
    /// and checks the result. Overridden paths are relative to the file's folder too. Of the model that
    /// `model.pretrained` names, the configuration is read.
    ///
    /// # Errors
    /// The file cannot be read or is not TOML; an override, key or value is not valid; the model cannot be opened or
    /// is not as written.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        Self::read(path, |text, folder| Self::parse_in(text, overrides, folder))
    }

    /// Reads the configuration that a run has written into its folder. All is in it, so the model that the run started
    /// from need not be there any more, and is not named in the result, unless the run has trained adapters for it.
    ///
    /// # Errors
    /// As [`Config::load`], but for the model.
    pub fn load_written(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path, |text, _| {
            let mut table = parse_table(text)?;
            let adapters = table.contains_key("lora");
            if let Some(model) =
                table.get_mut("model").and_then(toml::Value::as_table_mut).filter(|_| !adapters)
            {
                model.remove("pretrained");
            }
            Self::from_table(table)
        })
    }

    /// As [`Config::load`], from the text itself; paths stay as written.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        Self::parse_in(text, overrides, Path::new(""))
    }

    fn read(
        path: &Path,
        parse: impl FnOnce(&str, &Path) -> Result<Self, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let read = |source| ConfigError::Read { path: path.into(), source };
        let text = fs::read_to_string(path).map_err(read)?;
        let path = fs::canonicalize(path).map_err(read)?;
        let folder = path.parent().unwrap_or(&path);
        let mut config = parse(&text, folder).map_err(|error| error.within(&path))?;
        config.run.dir = paths::join(folder, &config.run.dir);
        config.data.resolve(folder);
        config.pipeline.memory.resolve(folder);
        Ok(config)
    }

    /// As [`Config::parse`], the path of a model relative to `folder`.
    fn parse_in(text: &str, overrides: &[String], folder: &Path) -> Result<Self, ConfigError> {
        let mut table = parse_table(text)?;
        for text in overrides {
            overrides::apply(&mut table, text)?;
        }
        let start = Start::fill(&mut table, folder)?;
        let config = Self::from_table(table)?;
        start.map_or(Ok(()), |start| start.check(&config.model, config.lora.is_some()))?;
        Ok(config)
    }

    fn from_table(table: toml::Table) -> Result<Self, ConfigError> {
        let config: Self = read_table(table)?;
        config.validate()?;
        Ok(config)
    }

    /// The configuration as TOML, defaults written out; [`Config::parse`] reads it back to an equal value.
    ///
    /// # Errors
    /// A number does not fit TOML's 64-bit signed integers.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(ConfigError::Write)
    }

    /// Checks the values, within and across sections. A parsed configuration has passed.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.model.validate()?;
        if let Some(model) = &self.model.pretrained {
            let (dir, outside) = (&self.run.dir, !self.run.dir.starts_with(model));
            require(
                outside,
                "run.dir",
                dir.display(),
                "a folder outside the one that model.pretrained names",
            )?;
        }
        if let Some(lora) = &self.lora {
            let pretrained = self.model.pretrained.is_some();
            require(pretrained, "model.pretrained", "none", "the model that the adapters of [lora] are for")?;
            lora.validate(&self.model)?;
        }
        self.data.validate()?;
        self.train.validate()?;
        require(
            self.train.sequence <= self.model.context,
            "train.sequence",
            self.train.sequence,
            format_args!("at most model.context = {}", self.model.context),
        )?;
        self.optimizer.validate()?;
        self.eval.validate()?;
        self.pipeline.validate(self.model.layers)?;
        self.tensor_parallel.validate(&self.model)?;
        require(
            self.stages.is_empty() || self.stages.len() == self.pipeline.stages,
            "stage",
            format_args!("{} entries", self.stages.len()),
            format_args!("one [[stage]] for each of pipeline.stages = {}, or none", self.pipeline.stages),
        )?;
        self.stages.iter().enumerate().try_for_each(|(index, stage)| stage.validate(index))
    }
}

/// Reads a TOML text of any kind as strictly as a configuration: no unknown key, and errors that name the key.
///
/// # Errors
/// The text is not TOML; a key is unknown or missing; a value has the wrong type or form.
pub fn parse_strictly<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    read_table(parse_table(text)?)
}

fn read_table<T: DeserializeOwned>(table: toml::Table) -> Result<T, ConfigError> {
    keys::check::<T>(&table)?;
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let key = error.path().iter().next().map(|_| error.path().to_string());
        ConfigError::Value { key, reason: error.inner().message().to_owned() }
    })
}

fn parse_table(text: &str) -> Result<toml::Table, ConfigError> {
    text.parse().map_err(ConfigError::Syntax)
}

#[cfg(test)]
mod tests;
