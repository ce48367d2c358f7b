//! The sections of an experiment file.

use std::path::PathBuf;

use serde::Deserialize;
use thinwire_train::config::{Bandwidth, ConfigError, Latency, require};
use thinwire_train::fidelity::FidelitySettings;

use super::row::slug;
use crate::network::LEAST_RATE;

/// An experiment: every link with every variant, seed and setting.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Experiment {
    /// `[lab]`
    pub lab: Lab,
    /// `[[link]]`: none leaves the links as the configuration has them.
    #[serde(default, rename = "link")]
    pub links: Vec<LinkAxis>,
    /// `[[variant]]`: none is one without a name that changes nothing.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// `[[setting]]`: what is compared.
    #[serde(default, rename = "setting")]
    pub settings: Vec<Setting>,
    /// `[fidelity]`: instead of running stages, every row is trained in this process and gradients are compared on the way.
    #[serde(default)]
    pub fidelity: Option<FidelitySettings>,
    /// The file itself, for the report.
    #[serde(skip)]
    pub text: String,
}

/// `[lab]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Lab {
    /// The report's title.
    pub title: String,
    /// The configuration of the runs.
    pub config: PathBuf,
    /// Where runs and report go.
    pub dir: PathBuf,
    /// Changes to the configuration for every row, as `train.steps=12`. Default: none.
    #[serde(default)]
    pub set: Vec<String>,
    /// Each row is run with each of them as `run.seed`. Default: 1.
    #[serde(default = "defaults::seeds")]
    pub seeds: Vec<u64>,
    /// Steps at a run's start that are left out of all figures of speed. Default: 1.
    #[serde(default = "defaults::warmup")]
    pub warmup: u64,
    /// The setting that speed-ups and losses are relative to.
    pub reference: String,
    /// Further settings over which speed-ups are told. Default: none.
    #[serde(default)]
    pub compare: Vec<String>,
    /// How far a link's measured rate may be from the configured one, as a share of it. Default: 0.05.
    #[serde(default = "defaults::tolerance")]
    pub tolerance: f64,
    /// What a run that fails does. Default: `"record"`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether the checkpoints of finished rows are kept. Default: false.
    #[serde(default)]
    pub keep_checkpoints: bool,
}

/// `[[link]]`: all links of a run, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct LinkAxis {
    /// Bits a second on the wire, headers of Ethernet and TCP/IP included.
    pub rate: Bandwidth,
    /// Added one way, by the receiving stage. Default: none.
    #[serde(default)]
    pub latency: Option<Latency>,
}

/// `[[setting]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Setting {
    /// Its name in the report.
    pub name: String,
    /// Changes to the configuration.
    #[serde(default)]
    pub set: Vec<String>,
}

/// `[[variant]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variant {
    /// Its name in the report.
    pub name: String,
    /// Changes to the configuration.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What a run that fails does to the experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is in the report as failed, and the next row is run.
    #[default]
    Record,
    /// It ends the experiment, without a report.
    Stop,
}

mod defaults {
    pub(super) fn seeds() -> Vec<u64> {
        vec![1]
    }
    pub(super) fn warmup() -> u64 {
        1
    }
    pub(super) fn tolerance() -> f64 {
        0.05
    }
}

impl Experiment {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Lab { seeds, reference, compare, tolerance, .. } = &self.lab;
        require(!self.settings.is_empty(), "setting", "[]", "at least one [[setting]]")?;
        require(!seeds.is_empty(), "lab.seeds", "[]", "at least one seed")?;
        require(
            *tolerance > 0.0 && *tolerance < 1.0,
            "lab.tolerance",
            tolerance,
            "a share above 0 and below 1, such as 0.05",
        )?;
        if let Some(FidelitySettings { every, batches }) = self.fidelity {
            require(every > 0, "fidelity.every", every, "1 or more steps")?;
            require(batches > 0, "fidelity.batches", batches, "1 or more steps' worth of data")?;
            let links = format_args!("{} entries", self.links.len());
            require(
                self.links.is_empty(),
                "link",
                links,
                "none with [fidelity]: nothing crosses a link there",
            )?;
        }
        for axis in &self.links {
            let fast = axis.rate.rate().bits_per_second() >= LEAST_RATE;
            require(fast, "link.rate", axis.rate, "200kbit or more: slower ones cannot be measured in time")?;
        }
        let setting_names: Vec<&str> = self.settings.iter().map(|setting| &*setting.name).collect();
        for (key, name) in
            compare.iter().map(|name| ("lab.compare", name)).chain([("lab.reference", reference)])
        {
            let expected = format_args!("the name of a [[setting]]: {}", setting_names.join(", "));
            require(setting_names.contains(&&**name), key, name, expected)?;
        }
        distinct("setting.name", setting_names)?;
        distinct("variant.name", self.variants.iter().map(|variant| &*variant.name))?;
        distinct("lab.seeds", seeds.iter().map(u64::to_string))?;
        distinct("link", self.links.iter().map(LinkAxis::to_string))
    }
}

/// Characters of a name: with four bytes each, a folder's name still holds them.
const LONGEST_NAME: usize = 60;

/// Names become folders' names, so they must differ in letters and digits.
fn distinct(key: &str, names: impl IntoIterator<Item: AsRef<str>>) -> Result<(), ConfigError> {
    let mut seen = Vec::new();
    for name in names {
        let (name, folder) = (name.as_ref(), slug(name.as_ref()));
        require(!folder.is_empty(), key, format_args!("`{name}`"), "a name with letters or digits")?;
        let plain = name.chars().count() <= LONGEST_NAME && !name.contains(char::is_control);
        let expected = format_args!("at most {LONGEST_NAME} characters, in a line");
        require(plain, key, format_args!("{name:?}"), expected)?;
        let expected = "each once; names differ in more than case, spaces and signs";
        require(!seen.contains(&folder), key, format_args!("`{name}`"), expected)?;
        seen.push(folder);
    }
    Ok(())
}
