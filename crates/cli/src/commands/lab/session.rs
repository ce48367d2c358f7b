//! Running the rows of an experiment.

use std::env;
use std::ffi::OsString;
use std::time::Instant;

use thinwire_lab::experiment::{Experiment, Row};
use thinwire_lab::folder::{Finished, Outcome};
use thinwire_lab::network::{LinkRate, Network, NetworkError};
use thinwire_train::fidelity::{self, Fidelity, FidelitySettings};
use thinwire_train::run::Setup;
use thinwire_train::config::{Config, LayerPlan, LoraConfig, ModelConfig, TrainConfig};

use crate::error::{CommandError, one_line, say};
use crate::launch::{self, Hosts};
use crate::signals::Signals;
use crate::stopped::Stopped;
use crate::tokenizing::tokenizing;

/// What the rows have in common.
pub(super) struct Session<'a> {
    tolerance: f64,
    signals: &'a Signals,
    /// Gradients are compared in this process, instead of stages being run.
    fidelity: Option<FidelitySettings>,
    /// The command of a probe.
    probe: Vec<OsString>,
    /// That of the row before, which the next may share.
    network: Option<Network>,
    /// Measured layer maps: measured again, they might differ, and with them what is compared.
    maps: Vec<(Split, LayerPlan)>,
    /// Seconds that rows have taken.
    taken: Vec<f64>,
}

/// What a measured layer map depends on.
#[derive(Debug, Clone, PartialEq)]
struct Split {
    stages: usize,
    model: ModelConfig,
    lora: Option<LoraConfig>,
    train: TrainConfig,
}

/// What a run came to, and the links around it.
struct Ran {
    before: Vec<LinkRate>,
    after: Vec<LinkRate>,
    outcome: Outcome,
}

impl<'a> Session<'a> {
    /// A session that goes on with what is `kept` of an earlier one.
    pub(super) fn new<'k>(
        experiment: &Experiment,
        signals: &'a Signals,
        kept: impl Iterator<Item = (&'k Row, &'k Finished)>,
    ) -> Result<Self, CommandError> {
        let probe = vec![env::current_exe()?.into_os_string(), "probe".into()];
        let tolerance = experiment.lab.tolerance;
        let fidelity = experiment.fidelity;
        let mut session =
            Self { tolerance, signals, fidelity, probe, network: None, maps: Vec::new(), taken: Vec::new() };
        for (row, finished) in kept {
            session.taken.push(finished.seconds);
            if row.config.pipeline.layers == LayerPlan::Auto {
                session.maps.push((Split::of(&row.config), finished.layers.clone()));
            }
        }
        Ok(session)
    }

    /// Seconds that `rows` more will take, if one has been run.
    pub(super) fn estimate(&self, rows: usize) -> Option<f64> {
        let mean = self.taken.iter().sum::<f64>() / self.taken.len() as f64;
        (!self.taken.is_empty()).then_some(mean * rows as f64)
    }

    /// Runs `row`. That its run fails, or that its links are not as asked for, is what it comes to.
    ///
    /// # Errors
    /// The run was stopped, or there can be no network at all.
    pub(super) fn run(&mut self, row: &Row) -> Result<Finished, CommandError> {
        let begin = Instant::now();
        let mut config = row.config.clone();
        let ran = match self.with_map(&mut config) {
            Ok(()) => self.run_between_measurements(row, &config)?,
            Err(error) => failed(Vec::new(), one_line(&*error)),
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.taken.push(seconds);
        Ok(Finished {
            at: row.at.clone(),
            fingerprint: row.fingerprint.clone(),
            command: row.command.clone(),
            layers: config.pipeline.layers,
            seconds,
            links_before: ran.before,
            links_after: ran.after,
            outcome: ran.outcome,
        })
    }

    fn run_between_measurements(&mut self, row: &Row, config: &Config) -> Result<Ran, CommandError> {
        if let Some(settings) = self.fidelity {
            let outcome = compare_gradients(config, settings);
            return Ok(Ran { before: Vec::new(), after: Vec::new(), outcome });
        }
        let Some(rate) = row.at.rate else {
            let outcome = self.train(config, Hosts::Here)?;
            return Ok(Ran { before: Vec::new(), after: Vec::new(), outcome });
        };
        let stages = config.pipeline.stages;
        let network = match self.network.take().filter(|same| (same.stages(), same.rate()) == (stages, rate)) {
            Some(same) => same,
            None => Network::chain(stages, rate)?,
        };
        let measure = |network: &Network| network.measure(&self.probe, self.tolerance);
        let before = match measure(&network) {
            Ok(before) => before,
            Err(error) => return Ok(failed(Vec::new(), told(&error))),
        };
        let outcome = self.train(config, Hosts::Network(&network))?;
        if let Outcome::Failed(error) = outcome {
            return Ok(failed(before, error));
        }
        let ran = match measure(&network) {
            Ok(after) => Ran { before, after, outcome },
            Err(error) => failed(before, format!("after the run, {}", told(&error))),
        };
        self.network = Some(network);
        Ok(ran)
    }

    fn train(&self, config: &Config, hosts: Hosts<'_>) -> Result<Outcome, CommandError> {
        match launch::run(config, hosts, false, true, self.signals) {
            Ok(report) => Ok(Outcome::Done(Box::new(report))),
            Err(error) if error.is::<Stopped>() => Err(error),
            Err(error) => Ok(Outcome::Failed(one_line(&*error))),
        }
    }

    /// Writes the layer map out: the one that rows of the same model, stages and batches have.
    fn with_map(&mut self, config: &mut Config) -> Result<(), CommandError> {
        if config.pipeline.layers != LayerPlan::Auto {
            return Ok(());
        }
        let split = Split::of(config);
        if let Some((_, known)) = self.maps.iter().find(|(known, _)| *known == split) {
            config.pipeline.layers = known.clone();
            return Ok(());
        }
        *config = launch::resolve(config.clone(), false)?;
        self.maps.push((split, config.pipeline.layers.clone()));
        Ok(())
    }
}

impl Split {
    fn of(config: &Config) -> Self {
        let Config { model, lora, train, pipeline, .. } = config.clone();
        Self { stages: pipeline.stages, model, lora, train }
    }
}

/// Trains in this process and compares gradients. A signal ends the process.
fn compare_gradients(config: &Config, settings: FidelitySettings) -> Outcome {
    let told = |point: &Fidelity| {
        let Fidelity { step, step_error, mean_error, .. } = point;
        say(format!("step {step}   gradient error {step_error:.5}, of the mean {mean_error:.5}\n"));
    };
    let measured = Setup::load_with(config.clone(), &mut tokenizing())
        .and_then(|setup| fidelity::measure(setup, settings, &mut { told }));
    match measured {
        Ok(report) => Outcome::Measured(report),
        Err(error) => Outcome::Failed(one_line(&error)),
    }
}

fn failed(before: Vec<LinkRate>, error: String) -> Ran {
    Ran { before, after: Vec::new(), outcome: Outcome::Failed(error) }
}

fn told(error: &NetworkError) -> String {
    one_line(error)
}
