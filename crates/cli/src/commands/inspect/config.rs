//! Configurations: what they resolve to, and what the run will be like.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thinwire_train::config::{Config, ConfigError, LayerMap, StageUnits, Unit};
use thinwire_train::model::Architecture;
use thinwire_train::plan::{LinkTraffic, ModelTimes, tied_gradient_bytes, traffic};
use thinwire_train::run::Preview;

use crate::error::CommandError;

/// A run that is not started.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    path: PathBuf,
    /// Every value, defaults included.
    config: Config,
    /// The same as TOML.
    #[serde(skip)]
    toml: String,
    tokenizer: String,
    architecture: Architecture,
    /// A tied matrix counts once.
    #[serde(flatten)]
    parameters: Parameters,
    /// Absent as long as the layer map is to be measured.
    stages: Option<Vec<StageReport>>,
    links: Vec<LinkTraffic>,
    /// What every step sends besides, in either direction of each link.
    tied_gradient_bytes: u64,
    measured: Option<Measured>,
}

/// One stage's share of a model.
#[derive(Debug, Serialize)]
pub(super) struct StageReport {
    pub(super) units: StageUnits,
    /// With its copy of a tied matrix.
    #[serde(flatten)]
    pub(super) parameters: Parameters,
}

/// Numbers of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Parameters {
    /// In all parameters.
    #[serde(rename = "parameters")]
    pub(super) all: u64,
    /// In those that training changes: the adapters, if there are any.
    pub(super) trainable: u64,
}

/// The measured cost of each unit, and the split by it.
#[derive(Debug, Serialize)]
struct Measured {
    units: Vec<UnitReport>,
    /// For `pipeline.layers`.
    layers: Vec<StageUnits>,
}

/// Seconds for one micro-batch.
#[derive(Debug, Serialize)]
struct UnitReport {
    unit: String,
    forward: f64,
    backward: f64,
    parameters: u64,
}

pub(super) fn report(path: &Path, overrides: &[String], measure: bool) -> Result<Report, CommandError> {
    let preview = Preview::load(Config::load(path, overrides)?)?;
    let (times, proposed) = measure.then(|| preview.measure()).transpose()?.unzip();
    let measured = times.zip(proposed.as_ref()).map(|(times, map)| Measured::new(&preview.architecture, &times, map));
    let Preview { config, architecture, map, tokenizer } = preview;
    let map = map.or(proposed);
    let stage = |units: &StageUnits| StageReport::new(&architecture, units);
    Ok(Report {
        kind: "config",
        path: path.into(),
        toml: toml(&config)?,
        tokenizer: tokenizer.id().to_owned(),
        parameters: Parameters::of_model(&architecture),
        stages: map.as_ref().map(|map| map.stages().iter().map(stage).collect()),
        links: traffic(&config, map.as_ref())?,
        tied_gradient_bytes: tied_gradient_bytes(&config, &architecture)?,
        measured,
        architecture,
        config,
    })
}

impl Parameters {
    /// Of the whole model; a tied matrix counts once.
    pub(super) fn of_model(architecture: &Architecture) -> Self {
        let whole = StageUnits::whole(architecture.layers);
        let Self { all, trainable } = Self::of(architecture, &whole);
        let matrix = (architecture.vocab as u64).saturating_mul(architecture.hidden as u64);
        let once = |all: u64, tied| if tied { all.saturating_sub(matrix) } else { all };
        Self { all: once(all, architecture.tied), trainable: once(trainable, architecture.trains_tied()) }
    }

    /// Of one unit, with its copy of a tied matrix.
    pub(super) fn of_unit(architecture: &Architecture, unit: Unit) -> Self {
        Self { all: architecture.parameters(unit), trainable: architecture.trainable(unit) }
    }

    /// Of some units, with their copies of a tied matrix.
    fn of(architecture: &Architecture, units: &StageUnits) -> Self {
        let times = |unit, count: u64| {
            let Self { all, trainable } = Self::of_unit(architecture, unit);
            Self { all: all.saturating_mul(count), trainable: trainable.saturating_mul(count) }
        };
        let blocks = times(Unit::Block(0), units.blocks.len() as u64);
        let ends = [(Unit::Embed, units.embed), (Unit::Head, units.head)];
        ends.into_iter().fold(blocks, |sum, (unit, owned)| {
            let Self { all, trainable } = times(unit, owned.into());
            Self { all: sum.all.saturating_add(all), trainable: sum.trainable.saturating_add(trainable) }
        })
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} parameters", self.all)?;
        if self.trainable < self.all { write!(f, ", {} of them trainable", self.trainable) } else { Ok(()) }
    }
}

fn toml(config: &Config) -> Result<String, ConfigError> {
    Ok(config.to_toml()?.trim_end().to_owned())
}

impl StageReport {
    pub(super) fn new(architecture: &Architecture, units: &StageUnits) -> Self {
        Self { units: units.clone(), parameters: Parameters::of(architecture, units) }
    }
}

impl Measured {
    fn new(architecture: &Architecture, times: &ModelTimes, map: &LayerMap) -> Self {
        let unit = |unit: Unit| UnitReport {
            unit: unit.to_string(),
            forward: times.of(unit).forward,
            backward: times.of(unit).backward,
            parameters: architecture.parameters(unit),
        };
        let whole = StageUnits::whole(architecture.layers);
        Self { units: whole.iter().map(unit).collect(), layers: map.stages().to_vec() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: configuration\n\n{}\n", self.path.display(), self.toml)?;
        write!(f, "{}; tokenizer {}", self.parameters, self.tokenizer)?;
        match &self.stages {
            Some(stages) => write_stages(f, stages)?,
            None => f.write_str(
                "\nThe layer map is measured when the run starts; with --measure it is measured now.",
            )?,
        }
        if !self.links.is_empty() {
            write_links(f, &self.links)?;
        }
        if self.tied_gradient_bytes > 0 {
            let (bytes, codec) = (self.tied_gradient_bytes, self.config.pipeline.tied);
            write!(f, "\nand {bytes} bytes in either direction for the gradient of the tied matrix, as {codec}")?;
        }
        self.measured.as_ref().map_or(Ok(()), |measured| measured.write(f))
    }
}

fn write_stages(f: &mut fmt::Formatter<'_>, stages: &[StageReport]) -> fmt::Result {
    write!(f, "\n\n{:<8}{:>16}{:>16}  units", "stage", "parameters", "trainable")?;
    for (stage, StageReport { units, parameters: Parameters { all, trainable } }) in stages.iter().enumerate() {
        write!(f, "\n{stage:<8}{all:>16}{trainable:>16}  {units}")?;
    }
    Ok(())
}

fn write_links(f: &mut fmt::Formatter<'_>, links: &[LinkTraffic]) -> fmt::Result {
    f.write_str("\n\nBytes of a step, frame headers included:\n")?;
    write!(f, "{:<8}{:<10}{:>14}{:>14}{:>14}", "link", "", "bytes", "as bf16", "as f32")?;
    write!(f, "{:>14}{:>10}  codec", "bits/element", "seconds")?;
    for link in links {
        let name = format!("{}-{}", link.from, link.to);
        let seconds = link.seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
        write!(f, "\n{name:<8}{:<10}{:>14}", link.direction.name(), link.bytes)?;
        write!(f, "{:>14}{:>14}", link.bf16_bytes, link.f32_bytes)?;
        write!(f, "{:>14.3}{seconds:>10}  {}", link.bits_per_element, link.codec)?;
    }
    Ok(())
}

impl Measured {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\n\nMeasured on this machine, milliseconds for a micro-batch:\n")?;
        write!(f, "{:<12}{:>12}{:>12}{:>16}", "unit", "forward", "backward", "parameters")?;
        for UnitReport { unit, forward, backward, parameters } in &self.units {
            write!(f, "\n{unit:<12}{:>12.3}{:>12.3}{parameters:>16}", forward * 1e3, backward * 1e3)?;
        }
        let layers: Vec<String> = self.layers.iter().map(|units| format!("\"{units}\"")).collect();
        write!(f, "\n\nlayers = [{}]", layers.join(", "))
    }
}
