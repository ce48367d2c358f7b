//! `thinwire stage`: one stage of a run.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::{process, thread};

use clap::Args;
use thinwire_link::SecretKey;
use thinwire_train::checkpoint;
use thinwire_train::config::Config;
use thinwire_train::metrics::Event;
use thinwire_train::pipeline::PipelineError;
use thinwire_train::run::{
    Emit, Links, Neighborhood, Next, Outcome, Previous, Resume, RunError, Setup, Stop, connect, train,
};

use crate::chronicle::Chronicle;
use crate::error::{CommandError, one_line, say};
use crate::output::Output;
use crate::run_folder::RunFolder;
use crate::signals::{self, Signal, Signals};
use crate::start::Start;
use crate::tokenizing::tokenizing;
use crate::stopped::Stopped;

/// Run one stage, so that stages can be on different machines.
///
/// Every stage needs the same configuration, with one `[[stage]]` entry each, and the texts; they compare hashes. Start
/// them in any order within `pipeline.connect_seconds`.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "`--stage` is what it is called")]
pub(crate) struct Stage {
    /// The configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Which stage, counted from 0.
    #[arg(long, value_name = "K")]
    stage: usize,
    /// This stage's secret key, as `thinwire key` makes it.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    start: Start,
    /// Listen here instead of at the configured address.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Started by `thinwire train`: print events on standard output, and end when standard input closes.
    #[arg(long, hide = true)]
    driven: bool,
    /// Where the next stage listens, instead of the configured address.
    #[arg(long, hide = true, value_name = "HOST:PORT")]
    next: Option<String>,
}

impl Stage {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        if self.driven { self.run_driven() } else { self.run_alone(output) }
    }

    /// Tells everything to the launcher, which records it.
    fn run_driven(self) -> Result<(), CommandError> {
        let stop = Stop::default();
        signals::ignore_interrupt()?;
        let signals = Signals::watch_terminate()?;
        end_on(&signals, &stop);
        obey_standard_input(&stop);
        let mut stdout = io::stdout();
        let mut emit = move |event: Event| -> Result<(), CommandError> {
            let line = serde_json::to_string(&event)? + "\n";
            stdout.write_all(line.as_bytes())?;
            Ok(stdout.flush()?)
        };
        let stage = self.stage;
        let outcome = self.work(&stop, &mut emit);
        if let Err(error) = &outcome {
            let _ = emit(Event::Failed { stage, error: one_line(&**error) });
            process::exit(1); // the launcher shows the error
        }
        outcome.map(|_| ())
    }

    /// Records the stage's own metrics in the run's folder. An earlier run is replaced only once both neighbours have
    /// agreed to the new one.
    fn run_alone(self, output: Output) -> Result<(), CommandError> {
        let signals = Signals::watch()?;
        let setup = self.setup()?;
        let neighborhood = self.neighborhood(&setup)?;
        let config = setup.config.clone();
        let folder = RunFolder::of(&config);
        let _lock = folder.claim(self.start.resume, self.start.overwrite)?;
        if self.start.resume {
            checkpoint::check_run(&folder.checkpoints(), &setup.facts()?)?;
        }
        let mut before = Vec::new();
        let links = self.connect(&setup, neighborhood, &mut |event| {
            if let Event::Listening { stage, address } = &event {
                say(format!("stage {stage}: listening on {address}\n"));
            }
            before.push(event);
            Ok(())
        })?;
        if self.start.overwrite {
            folder.clear()?;
        }
        folder.write_config(&config)?;
        checkpoint::clean(&folder.checkpoints(), ..)?;
        let mut chronicle = Chronicle::new(&config, 1, self.start.resume)?;
        before.into_iter().try_for_each(|event| chronicle.record(event))?;
        let (stop, mut done) = (Stop::default(), None);
        let asked = end_on(&signals, &stop);
        let outcome = train(setup, self.stage, links, self.resume(), &stop, &mut |event| {
            if let Event::Step { step, .. } | Event::Resumed { step, .. } = event {
                done = Some(step);
            }
            Ok(chronicle.record(event)?)
        });
        signals.release();
        if let Err(RunError::Pipeline(PipelineError::Stopped { .. })) = outcome
            && let Some(&signal) = asked.get()
        {
            let what = format!("stage {}", self.stage);
            let checkpoint = checkpoint::latest(&folder.checkpoints())?.map(|newest| newest.step);
            return Err(Stopped::run(&what, signal, done, checkpoint).into());
        }
        outcome?;
        if let Some(report) = chronicle.finish()? {
            output.print(&report)?;
        }
        Ok(())
    }

    fn work(&self, stop: &Stop, emit: &mut Emit<'_>) -> Result<Outcome, CommandError> {
        let setup = self.setup()?;
        let neighborhood = self.neighborhood(&setup)?;
        let links = self.connect(&setup, neighborhood, emit)?;
        Ok(train(setup, self.stage, links, self.resume(), stop, emit)?)
    }

    fn setup(&self) -> Result<Setup, CommandError> {
        Ok(Setup::load_with(Config::load(&self.config, &self.start.overrides)?, &mut tokenizing())?)
    }

    fn connect(
        &self,
        setup: &Setup,
        neighborhood: Option<Neighborhood>,
        emit: &mut Emit<'_>,
    ) -> Result<Links, CommandError> {
        Ok(match neighborhood {
            Some(neighborhood) => connect(setup, self.stage, neighborhood, self.start.resume, emit)?,
            None => Links::default(),
        })
    }

    fn resume(&self) -> Resume {
        if self.start.resume { Resume::Newest } else { Resume::Fresh }
    }

    /// `None` for a run of one stage, which has no neighbours and needs no key.
    fn neighborhood(&self, setup: &Setup) -> Result<Option<Neighborhood>, CommandError> {
        let (stage, stages) = (self.stage, setup.stages());
        if stage >= stages {
            return Err(format!("stage {stage} does not exist: the run has {stages}, counted from 0").into());
        }
        if stages == 1 {
            return Ok(None);
        }
        let configured = &setup.config.stages;
        let own = configured
            .get(stage)
            .ok_or("the configuration has no [[stage]] entries, with an address and a key for each stage")?;
        let path = self.key.as_ref().ok_or("--key FILE is needed: this stage's secret key")?;
        let identity = SecretKey::load(path)?;
        let pinned = own.key;
        if identity.public() != pinned {
            let file = path.display();
            return Err(format!(
                "{file} holds the key {}, but the configuration pins {pinned} for stage {stage}",
                identity.public()
            )
            .into());
        }
        let previous = stage.checked_sub(1).map(|before| Previous {
            listen: self.listen.clone().unwrap_or_else(|| own.address.clone()),
            key: configured[before].key,
        });
        let next = configured.get(stage + 1).map(|after| Next {
            address: self.next.clone().unwrap_or_else(|| after.address.clone()),
            key: after.key,
        });
        Ok(Some(Neighborhood { identity, previous, next }))
    }
}

/// Lets the next signal stop the stage in order; before it is at work there is nothing to put in order. The signal is
/// then in what is returned.
fn end_on(signals: &Signals, stop: &Stop) -> Arc<OnceLock<Signal>> {
    let asked = Arc::new(OnceLock::new());
    let (stop, told) = (stop.clone(), asked.clone());
    signals.first_to(move |signal| {
        let _ = told.set(signal); // only the first comes here
        if !stop.ask(&signal.to_string()) {
            signal.end_at_once();
        }
    });
    asked
}

/// The launcher holds the other end: when it dies, however it dies, so does this process. A line on it is the name of
/// the signal that stops the run.
fn obey_standard_input(stop: &Stop) {
    let stop = stop.clone();
    thread::spawn(move || {
        for signal in io::stdin().lines().map_while(Result::ok) {
            if !stop.ask(&signal) {
                break;
            }
        }
        process::exit(1);
    });
}
