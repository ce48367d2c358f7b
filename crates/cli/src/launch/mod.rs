//! All stages of a run as processes on this machine.

mod child;
mod hosts;
mod verdict;

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use thinwire_link::SecretKey;
use thinwire_train::checkpoint;
use thinwire_train::config::{Config, LayerPlan, StageConfig};
use thinwire_train::metrics::{Event, RunReport};
use thinwire_train::run::{Setup, with_layer_map};

use self::child::{Child, Order, Said};
pub(crate) use self::hosts::Hosts;
use self::verdict::Verdict;
use crate::chronicle::Chronicle;
use crate::error::CommandError;
use crate::run_folder::RunFolder;
use crate::signals::{Signal, Signals};
use crate::stopped::Stopped;
use crate::tokenizing::tokenizing;

/// How long the other stages have to end by themselves once one has failed.
const GRACE: Duration = Duration::from_secs(5);

/// The configuration with its layer map written out: measured, or for a resumed run the one it had.
pub(crate) fn resolve(mut config: Config, resume: bool) -> Result<Config, CommandError> {
    let earlier = RunFolder::of(&config).config_file();
    if resume && config.pipeline.layers == LayerPlan::Auto && earlier.exists() {
        let earlier = Config::load_written(&earlier)?.pipeline;
        if earlier.stages == config.pipeline.stages {
            config.pipeline.layers = earlier.layers;
        }
    }
    Ok(with_layer_map(config)?)
}

/// Runs all stages of `config` on `hosts` to the end and records what they say.
///
/// The first of `signals` ends them in order.
pub(crate) fn run(
    config: &Config,
    hosts: Hosts<'_>,
    resume: bool,
    overwrite: bool,
    signals: &Signals,
) -> Result<RunReport, CommandError> {
    if let Some(stage) = config.stages.first() {
        return Err(format!(
            "the configuration has [[stage]] entries (the first at {}): start each with `thinwire stage`, or remove \
             them to run all stages on this machine",
            stage.address
        )
        .into());
    }
    // What is wrong with the texts or settings is said once, before any process starts.
    let setup = Setup::load_with(config.clone(), &mut tokenizing())?;
    let folder = RunFolder::of(&setup.config);
    let _lock = folder.claim(resume, overwrite)?;
    if resume {
        // What the run was made with stays written until it is known to go on.
        checkpoint::check_run(&folder.checkpoints(), &setup.facts()?)?;
    }
    let Setup { config, map, .. } = setup;
    let stages = map.stages().len();
    if overwrite {
        folder.clear()?;
    }
    checkpoint::clean(&folder.checkpoints(), ..)?;
    let mut local = config.clone();
    local.stages = make_keys(&folder, stages)?;
    folder.write_config(&local)?;
    let chronicle = Chronicle::new(&config, stages, resume)?;
    let patience = config.pipeline.connect_deadline();
    let verdict = Verdict::default();
    let launch = Launch { folder, stages, resume, patience, chronicle, verdict, asked: None, step: None };
    let report = launch.run(hosts, signals);
    signals.release();
    report
}

/// A key for each stage of a local run; kept only in the run's folder.
fn make_keys(folder: &RunFolder, stages: usize) -> Result<Vec<StageConfig>, CommandError> {
    if stages == 1 {
        return Ok(Vec::new());
    }
    (0..stages)
        .map(|stage| {
            let path = folder.key_file(stage);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let _ = fs::remove_file(&path);
            let key = SecretKey::generate();
            key.save(&path)?;
            // The real ports are known only when the stages listen; the launcher passes them on.
            Ok(StageConfig { address: format!("127.0.0.1:{}", 1 + stage), key: key.public() })
        })
        .collect()
}

struct Launch {
    folder: RunFolder,
    stages: usize,
    resume: bool,
    /// How long a stage may take until it listens.
    patience: Duration,
    chronicle: Chronicle,
    verdict: Verdict,
    /// Who has asked for the end.
    asked: Option<Signal>,
    /// The last step that was recorded.
    step: Option<u64>,
}

impl Launch {
    fn run(mut self, hosts: Hosts<'_>, signals: &Signals) -> Result<RunReport, CommandError> {
        let (sender, said) = channel();
        let asked = sender.clone();
        // Nobody listens any more once the launcher is on its way out.
        signals.first_to(move |signal| drop(asked.send(Said::Asked(signal))));
        let mut children = Vec::new();
        let outcome = self.start(hosts, &sender, &said, &mut children);
        let outcome = outcome.and_then(|()| self.follow(&said, &children));
        drop(children); // ends those that still run
        outcome?;
        let report = self.chronicle.finish()?;
        if let (Some(signal), None) = (self.asked, &report) {
            let checkpoint = checkpoint::latest(&self.folder.checkpoints())?.map(|newest| newest.step);
            return Err(Stopped::run("the run", signal, self.step, checkpoint).into());
        }
        match self.verdict.error() {
            Some(error) => Err(error.into()),
            None => report.ok_or_else(|| "the stages ended without a result".into()),
        }
    }

    /// Starts the last stage first: each needs the address at which the next one listens.
    fn start(
        &mut self,
        hosts: Hosts<'_>,
        sender: &Sender<Said>,
        said: &Receiver<Said>,
        children: &mut Vec<Child>,
    ) -> Result<(), CommandError> {
        let mut next = None;
        for stage in (0..self.stages).rev() {
            let order = Order {
                config: self.folder.config_file(),
                stage,
                key: (self.stages > 1).then(|| self.folder.key_file(stage)),
                listen: hosts.listen(stage),
                next: next.take(),
                resume: self.resume,
                threads: threads_of_each(self.stages),
            };
            children.push(Child::start(&order, hosts, sender.clone())?);
            if stage > 0 {
                match self.wait_for_address(stage, said)? {
                    Some(address) => next = Some(address),
                    None => return Ok(()), // it failed; `follow` collects why
                }
            }
        }
        Ok(())
    }

    fn wait_for_address(
        &mut self,
        stage: usize,
        said: &Receiver<Said>,
    ) -> Result<Option<String>, CommandError> {
        let end = Instant::now() + self.patience;
        loop {
            let message = match said.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = self.patience.as_secs_f64();
                    return Err(format!("stage {stage} did not start to listen within {seconds:.1} s").into());
                }
                Err(error) => return Err(error.into()),
            };
            match message {
                Said::Event(Event::Listening { stage: speaker, address }) if speaker == stage => {
                    self.chronicle.record(Event::Listening { stage, address: address.clone() })?;
                    return Ok(Some(address));
                }
                other => self.take(other)?,
            }
            if self.verdict.failed() || self.asked.is_some() {
                return Ok(None);
            }
        }
    }

    /// Records until every stage has ended, or for a while after one has failed or all were asked to stop.
    fn follow(&mut self, said: &Receiver<Said>, children: &[Child]) -> Result<(), CommandError> {
        let mut end = None;
        let mut told = false;
        while self.verdict.ended() < children.len() {
            if let Some(signal) = self.asked
                && !std::mem::replace(&mut told, true)
            {
                for child in children {
                    child.ask_to_stop(signal);
                }
            }
            if self.verdict.failed() || told {
                end.get_or_insert_with(|| Instant::now() + GRACE);
            }
            let message = match end {
                Some(end) => match said.recv_timeout(end.saturating_duration_since(Instant::now())) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
                None => said.recv()?,
            };
            self.take(message)?;
        }
        Ok(())
    }

    fn take(&mut self, said: Said) -> Result<(), CommandError> {
        self.verdict.note(&said);
        match said {
            Said::Asked(signal) => self.asked = Some(signal),
            Said::Event(Event::Failed { .. }) if self.asked.is_some() => {} // it was asked to
            Said::Event(event) => {
                if let Event::Step { step, .. } | Event::Resumed { step, .. } = event {
                    self.step = self.step.max(Some(step));
                }
                self.chronicle.record(event)?;
            }
            Said::Line { stage, text } => self.chronicle.record(Event::Warning { stage, text })?,
            Said::Nonsense { .. } | Said::Ended { .. } => {}
        }
        Ok(())
    }
}

/// The cores, shared out; a setting of the user's own stands.
fn threads_of_each(stages: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / stages).max(1)
}
