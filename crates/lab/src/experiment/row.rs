//! One run of an experiment.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thinwire_data::require_files;
use thinwire_train::config::{Bandwidth, Config, Latency};

use super::error::ExperimentError;
use super::file::LinkAxis;

/// A run that an experiment asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where it is in the matrix.
    pub at: Coordinates,
    /// Its configuration, checked; `run.dir` is the row's own folder.
    pub config: Config,
    /// The command that makes the same run by itself, without the network and in the configuration's own folder.
    pub command: Vec<String>,
    /// Of the configuration, of how gradients are compared, and of Thinwire's version: that of an unchanged row is the same.
    pub fingerprint: String,
}

/// A place in the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinates {
    /// Rate of every link; `None` where links are as the configuration has them.
    pub rate: Option<Bandwidth>,
    /// Latency of every link, one way.
    pub latency: Option<Latency>,
    /// The variant's name, if the experiment has variants.
    pub variant: Option<String>,
    /// The setting's name.
    pub setting: String,
    /// `run.seed`
    pub seed: u64,
}

impl Row {
    /// Whether its texts are there: the row may be hours away.
    ///
    /// # Errors
    /// [`ExperimentError::Data`]
    pub fn require_data(&self) -> Result<(), ExperimentError> {
        let Self { at, config: Config { data, .. }, .. } = self;
        let texts = [("data.train", Some(&data.train)), ("data.heldout", data.heldout.as_ref())];
        for (key, sources) in texts.into_iter().filter_map(|(key, sources)| Some((key, sources?))) {
            require_files(&sources.0).map_err(|source| ExperimentError::Data {
                key,
                row: at.to_string(),
                source,
            })?;
        }
        Ok(())
    }
}

impl Coordinates {
    /// The link, as people read it; `None` where links are as the configuration has them.
    pub fn link(&self) -> Option<String> {
        self.rate.map(|rate| LinkAxis { rate, latency: self.latency }.to_string())
    }

    /// The row's folder below the experiment's.
    pub fn folder(&self) -> PathBuf {
        let names = [self.link(), self.variant.clone(), Some(self.setting.clone())];
        let mut path: PathBuf = names.into_iter().flatten().map(|name| slug(&name)).collect();
        path.push(format!("seed-{}", self.seed));
        path
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = format!("seed {}", self.seed);
        let names = [self.link(), self.variant.clone(), Some(self.setting.clone()), Some(seed)];
        f.write_str(&names.into_iter().flatten().collect::<Vec<_>>().join(" / "))
    }
}

impl fmt::Display for LinkAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rate)?;
        self.latency.map_or(Ok(()), |latency| write!(f, " +{latency}"))
    }
}

/// A name as part of a path: letters and digits in lower case, and `-` for runs of anything else.
pub(super) fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}
