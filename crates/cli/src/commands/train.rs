//! `thinwire train`: a run with all its stages on this machine.

use std::path::PathBuf;

use clap::Args;
use thinwire_codec::CodecSpec;
use thinwire_train::config::Config;
use thinwire_train::metrics::{Comparison, LossCurve, RunReport, write_loss_curves};

use crate::error::CommandError;
use crate::launch::{self, Hosts};
use crate::output::Output;
use crate::signals::Signals;
use crate::start::Start;

/// Train a model, every stage a process on this machine.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The configuration.
    config: PathBuf,
    #[command(flatten)]
    start: Start,
    /// Run a second time with this codec in both directions and for a tied matrix, such as f32, and compare.
    #[arg(long, value_name = "CODEC", conflicts_with = "resume")]
    compare: Option<CodecSpec>,
}

impl Train {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let signals = Signals::watch()?;
        let config = launch::resolve(Config::load(&self.config, &self.start.overrides)?, self.start.resume)?;
        let mut report = launch::run(&config, Hosts::Here, self.start.resume, self.start.overwrite, &signals)?;
        if let Some(codec) = &self.compare {
            report.comparison = Some(compare(&config, &report, codec, &signals)?);
        }
        output.print(&report)?;
        Ok(())
    }
}

/// The same run with another codec, into a folder inside the first one's.
fn compare(
    config: &Config,
    report: &RunReport,
    codec: &CodecSpec,
    signals: &Signals,
) -> Result<Comparison, CommandError> {
    let mut other = config.clone();
    let name = codec.to_string();
    let folder: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    other.run.dir = config.run.dir.join(format!("compare-{folder}"));
    // The same tokens, when there are so many that they are kept.
    let tokens = config.run.dir.join("tokens");
    other.data.cache = config.data.cache.clone().or(tokens.is_dir().then_some(tokens));
    other.pipeline.forward = *codec;
    other.pipeline.backward = *codec;
    other.pipeline.tied = *codec;
    for boundary in &mut other.pipeline.boundaries {
        boundary.forward = None;
        boundary.backward = None;
    }
    let other_report = launch::run(&other, Hosts::Here, false, true, signals)?;
    let own_name = format!("{} / {}", config.pipeline.forward, config.pipeline.backward);
    let plot = config.run.dir.join("compare.svg");
    let curve = LossCurve::read(&own_name, &config.run.dir)?;
    let other_curve = LossCurve::read(&name, &other.run.dir)?;
    write_loss_curves(&plot, &curve, &other_curve)?;
    Ok(Comparison::new(report, &other_report, &name, &plot))
}
