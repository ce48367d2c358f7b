//! `thinwire plan`: what a run will be like.

mod text;

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thinwire_train::config::{Bandwidth, Config};
use thinwire_train::model::Architecture;
use thinwire_train::plan::{self, Machine, Machines, Planner, Processors};
use thinwire_train::run::Preview;

use crate::error::{CommandError, say};
use crate::output::Output;

/// Predict speed and memory of a run, and say what holds it up.
///
/// Measures the model's units and the codecs on this machine, and simulates a step, micro-batch by micro-batch. Machines that
/// are not here are described in a file. Nothing is trained, no text is read.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The configuration.
    config: PathBuf,
    /// Change one setting, such as pipeline.stages=3; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// The stages' machines, and the links between them; without it, or where it has links alone, all stages are on this
    /// machine.
    #[arg(long, value_name = "FILE")]
    machines: Option<PathBuf>,
    /// Threads that compute on each stage; by default the cores are shared out.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Cores that the stages share on this machine, or each has on its own; by default all of this machine's.
    #[arg(long, value_name = "N", value_parser = cores)]
    cores: Option<f64>,
    /// Look for no changes, which takes most of the time.
    #[arg(long)]
    no_proposals: bool,
    /// Rates of the table, for every direction of every link.
    #[arg(
        long,
        value_name = "RATE,..",
        value_delimiter = ',',
        default_value = "10mbit,30mbit,100mbit,300mbit,1gbit,3gbit,10gbit"
    )]
    rates: Vec<Bandwidth>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Report {
    config: PathBuf,
    /// Of a step, in a micro-batch, and of a sequence.
    micro_batches: usize,
    micro_batch: usize,
    sequence: usize,
    #[serde(flatten)]
    plan: plan::Plan,
}

impl Plan {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let config = Config::load(&self.config, &self.overrides)?;
        let architecture = architecture(&config)?;
        let stages = config.pipeline.stages;
        let machines = match &self.machines {
            Some(path) => Machines::load(path, stages)?,
            None => elsewhere(&config),
        };
        say("measuring units and codecs ...\n".to_owned());
        let processors = Processors { threads: self.threads, cores: self.cores };
        let mut planner = Planner::new(architecture, stages, machines, processors);
        let plan = planner.plan(&config, &self.rates, !self.no_proposals)?;
        let train = &config.train;
        output.print(&Report {
            config: self.config,
            micro_batches: train.micro_batches,
            micro_batch: train.micro_batch,
            sequence: train.sequence,
            plan,
        })?;
        Ok(())
    }
}

fn cores(text: &str) -> Result<f64, String> {
    let cores = text.parse().ok().filter(|cores| (0.01..=1e6).contains(cores));
    cores.ok_or_else(|| "expected a number from 0.01 to 1e6".to_owned())
}

/// The model; its tokenizer need not be here if the configuration has its size.
fn architecture(config: &Config) -> Result<Architecture, CommandError> {
    match config.model.vocab {
        Some(vocab) => Ok(Architecture::new(&config.model, vocab).with_lora(config.lora.as_ref())),
        None => Ok(Preview::load(config.clone())?.architecture),
    }
}

/// Stages that have an address are each on a machine like this one.
fn elsewhere(config: &Config) -> Machines {
    let machine = |name: &str| Machine { name: name.to_owned(), ..Machine::this() };
    let machines = config.stages.iter().map(|stage| machine(&stage.address)).collect();
    Machines { machines, links: Vec::new() }
}
