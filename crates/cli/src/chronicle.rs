//! A run's recorder, which can start only when it is known at which step the run does.

use std::path::PathBuf;

use thinwire_train::config::Config;
use thinwire_train::metrics::{DisplayMode, Event, MetricsError, Recorder, RecorderOptions, RunReport};

/// Records events; those of a resumed run are held back until a stage says where it resumes.
#[derive(Debug)]
pub(crate) struct Chronicle {
    dir: PathBuf,
    options: RecorderOptions,
    recorder: Option<Recorder>,
    held_back: Vec<Event>,
}

impl Chronicle {
    /// For the events of `observed` stages.
    pub(crate) fn new(config: &Config, observed: usize, resume: bool) -> Result<Self, MetricsError> {
        let options = RecorderOptions {
            observed,
            total_steps: config.train.steps,
            trace: config.metrics.trace,
            tensorboard: config.metrics.tensorboard,
            display: DisplayMode::Auto,
        };
        let dir = config.run.dir.clone();
        let recorder = if resume { None } else { Some(Recorder::create(&dir, &options)?) };
        Ok(Self { dir, options, recorder, held_back: Vec::new() })
    }

    pub(crate) fn record(&mut self, event: Event) -> Result<(), MetricsError> {
        if self.recorder.is_none()
            && let Event::Resumed { step, .. } = event
        {
            let mut recorder = Recorder::append(&self.dir, step, &self.options)?;
            for event in self.held_back.drain(..) {
                recorder.record(&event)?;
            }
            self.recorder = Some(recorder);
        }
        if let Some(recorder) = &mut self.recorder {
            return recorder.record(&event);
        }
        self.held_back.push(event);
        Ok(())
    }

    /// The report, once a stage has finished.
    pub(crate) fn finish(self) -> Result<Option<RunReport>, MetricsError> {
        match self.recorder {
            Some(recorder) => recorder.finish(),
            None => Ok(None),
        }
    }
}
