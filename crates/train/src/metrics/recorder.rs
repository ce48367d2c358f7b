//! The recorder: takes the stages' events, drives the files and the display.

use std::fs;
use std::path::{Path, PathBuf};

use super::display::{Display, DisplayMode, Progress};
use super::error::MetricsError;
use super::event::Event;
use super::jsonl::MetricsFile;
use super::merge::StepMerger;
use super::record::{EvalRecord, Record, StepRecord};
use super::report::{RunReport, Tally};
use super::tensorboard::EventFile;
use super::trace::TraceFile;

/// Name of the metrics file in a run's folder.
pub const METRICS_FILE: &str = "metrics.jsonl";
/// Name of the trace in a run's folder.
pub const TRACE_FILE: &str = "trace.json";

/// What a [`Recorder`] makes of the events.
#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// Stages whose events it is fed: all of them in the driver, one for a stage started by hand. A step is recorded
    /// when that many have reported it.
    pub observed: usize,
    /// Steps of the whole run, for the progress bar.
    pub total_steps: u64,
    /// Whether to write a Chrome trace, `trace.json`.
    pub trace: bool,
    /// Whether to write a `TensorBoard` event file.
    pub tensorboard: bool,
    /// How to show progress on standard error.
    pub display: DisplayMode,
}

/// Writes a run's files and shows its progress.
///
/// What is recorded is handed to the operating system at once: a killed process loses at most the line it was
/// writing.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    metrics: MetricsFile,
    events: Option<EventFile>,
    trace: Option<TraceFile>,
    display: Display,
    progress: Progress,
    merger: StepMerger,
    /// An evaluation after a step that not all stages have reported yet.
    early_eval: Option<EvalRecord>,
    tally: Tally,
}

impl Recorder {
    /// Starts recording a new run in `dir`, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// [`MetricsError::Exists`] if the folder holds a run's metrics already, [`MetricsError::Io`] if it cannot be
    /// written.
    pub fn create(dir: &Path, options: &RecorderOptions) -> Result<Recorder, MetricsError> {
        fs::create_dir_all(dir).map_err(MetricsError::io("create", dir))?;
        let metrics = MetricsFile::create(&dir.join(METRICS_FILE))?;
        let events = options.tensorboard.then(|| EventFile::create(dir, None)).transpose()?;
        let trace = options.trace.then(|| TraceFile::create(&dir.join(TRACE_FILE))).transpose()?;
        Ok(Recorder::new(dir, options, 0, metrics, events, trace))
    }

    /// Goes on recording a run in `dir` that resumes from a checkpoint of `resume_step` steps. What the files say
    /// about later steps is dropped; the trace keeps it, as it shows what happened when.
    ///
    /// # Errors
    ///
    /// [`MetricsError::Io`] if the folder cannot be written, [`MetricsError::Corrupt`] if its metrics file holds
    /// something else.
    pub fn append(dir: &Path, resume_step: u64, options: &RecorderOptions) -> Result<Recorder, MetricsError> {
        fs::create_dir_all(dir).map_err(MetricsError::io("create", dir))?;
        let metrics = MetricsFile::append(&dir.join(METRICS_FILE), resume_step)?;
        let events = options.tensorboard.then(|| EventFile::create(dir, Some(resume_step))).transpose()?;
        let trace = options.trace.then(|| TraceFile::append(&dir.join(TRACE_FILE))).transpose()?;
        Ok(Recorder::new(dir, options, resume_step, metrics, events, trace))
    }

    fn new(
        dir: &Path,
        options: &RecorderOptions,
        first_step: u64,
        metrics: MetricsFile,
        events: Option<EventFile>,
        trace: Option<TraceFile>,
    ) -> Recorder {
        let progress = Progress { total_steps: options.total_steps, first_step, ..Progress::default() };
        Recorder {
            dir: dir.to_owned(),
            metrics,
            events,
            trace,
            display: Display::new(options.display, options.observed, &progress),
            progress,
            merger: StepMerger::new(options.observed),
            early_eval: None,
            tally: Tally::default(),
        }
    }

    /// Takes an event of any stage.
    ///
    /// # Errors
    ///
    /// [`MetricsError::Io`] if a file cannot be written.
    pub fn record(&mut self, event: &Event) -> Result<(), MetricsError> {
        self.tally.add(event);
        self.display.note(event);
        match event {
            Event::Step { .. } => match self.merger.add(event) {
                Some(step) => self.step(step),
                None => Ok(()),
            },
            &Event::Eval { step, loss, perplexity, tokens, seconds, .. } => {
                self.eval(EvalRecord { step, loss, perplexity, tokens, seconds })
            }
            Event::Spans { stage, spans } => match &mut self.trace {
                Some(trace) => trace.spans(*stage, spans),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Ends the files and the display. The report is there once a stage has [finished](Event::Finished).
    ///
    /// # Errors
    ///
    /// [`MetricsError::Io`] if a file cannot be written.
    pub fn finish(self) -> Result<Option<RunReport>, MetricsError> {
        self.display.finish(&self.progress);
        if let Some(trace) = self.trace {
            trace.close()?;
        }
        Ok(self.tally.report(&self.dir))
    }

    fn step(&mut self, record: StepRecord) -> Result<(), MetricsError> {
        if let Some(events) = &mut self.events {
            events.scalars(record.step, &step_scalars(&record))?;
        }
        self.metrics.write(&Record::Step(record.clone()))?;
        let step = record.step;
        self.progress.advance(record);
        self.display.update(&self.progress);
        match self.early_eval.take_if(|eval| eval.step == step) {
            Some(eval) => self.eval(eval),
            None => Ok(()),
        }
    }

    /// Every stage reports an evaluation; the first report is recorded, after its step's.
    fn eval(&mut self, record: EvalRecord) -> Result<(), MetricsError> {
        if self.progress.heldout.as_ref().is_some_and(|last| last.step == record.step) {
            return Ok(());
        }
        if self.merger.is_pending(record.step) {
            self.early_eval = Some(record);
            return Ok(());
        }
        if let Some(events) = &mut self.events {
            let scalars = [("heldout/loss", record.loss), ("heldout/perplexity", record.perplexity)];
            events.scalars(record.step, &scalars.map(|(tag, value)| (tag.to_owned(), value)))?;
        }
        self.metrics.write(&Record::Eval(record.clone()))?;
        self.progress.heldout = Some(record);
        self.display.update(&self.progress);
        Ok(())
    }
}

fn step_scalars(record: &StepRecord) -> Vec<(String, f64)> {
    let mut scalars = vec![
        ("train/loss".to_owned(), record.loss),
        ("train/learning_rate".to_owned(), record.learning_rate),
        ("train/gradient_norm".to_owned(), record.gradient_norm),
        ("train/tokens_per_second".to_owned(), record.tokens_per_second),
    ];
    for link in &record.links {
        let name = format!("link/{}-{}-{}", link.from, link.to, link.direction.name());
        scalars.extend(link.bits_per_element.map(|bits| (format!("{name}/bits_per_element"), bits)));
        scalars.extend(link.rel_sq_error.map(|error| (format!("{name}/rel_sq_error"), error)));
    }
    for all in &record.all_reduces {
        let name = format!("all_reduce/{}-{}", all.stage, all.direction.name());
        scalars.extend(all.bits_per_element.map(|bits| (format!("{name}/bits_per_element"), bits)));
    }
    scalars
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::super::jsonl::read_records;
    use super::super::samples;
    use super::*;

    fn options() -> RecorderOptions {
        RecorderOptions {
            observed: 2,
            total_steps: 4,
            trace: true,
            tensorboard: true,
            display: DisplayMode::Off,
        }
    }

    fn eval(stage: usize, step: u64) -> Event {
        Event::Eval { stage, step, loss: 4.0, perplexity: 54.6, tokens: 4096, seconds: 0.5 }
    }

    /// Two stages do the steps, evaluate after each second one, and leave spans.
    fn play(recorder: &mut Recorder, steps: std::ops::RangeInclusive<u64>) {
        for step in steps {
            for stage in [0, 1] {
                recorder.record(&samples::step(stage, step)).unwrap();
                recorder.record(&Event::Spans { stage, spans: vec![samples::span(step)] }).unwrap();
                if step % 2 == 0 {
                    recorder.record(&eval(stage, step)).unwrap();
                }
            }
        }
    }

    fn kinds(dir: &Path) -> Vec<(u64, bool)> {
        let records = read_records(&dir.join(METRICS_FILE)).unwrap();
        records.iter().map(|record| (record.step(), matches!(record, Record::Eval(_)))).collect()
    }

    #[test]
    fn a_run_leaves_its_files_and_a_report() {
        let dir = tempdir().unwrap();
        let run = dir.path().join("runs/a");
        let mut recorder = Recorder::create(&run, &options()).unwrap();
        play(&mut recorder, 1..=4);
        recorder.record(&samples::finished(0, 4)).unwrap();
        recorder.record(&samples::finished(1, 4)).unwrap();
        let report = recorder.finish().unwrap().unwrap();
        assert_eq!((report.steps, report.links.len(), report.run_dir.as_path()), (4, 2, run.as_path()));
        // Stage 0 tells of its evaluation before stage 1 tells of the step.
        let expected = [(1, false), (2, false), (2, true), (3, false), (4, false), (4, true)];
        assert_eq!(kinds(&run), expected);
        let trace: Vec<serde_json::Value> =
            serde_json::from_slice(&fs::read(run.join(TRACE_FILE)).unwrap()).unwrap();
        assert_eq!(trace.iter().filter(|event| event["ph"] == "X").count(), 8);
        assert_eq!(fs::read_dir(&run).unwrap().count(), 3);
    }

    #[test]
    fn a_resumed_run_has_each_step_once() {
        let dir = tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), &options()).unwrap();
        play(&mut recorder, 1..=3);
        drop(recorder);
        let mut recorder = Recorder::append(dir.path(), 2, &options()).unwrap();
        play(&mut recorder, 3..=4);
        assert!(recorder.finish().unwrap().is_none(), "no stage has finished");
        let expected = [(1, false), (2, false), (2, true), (3, false), (4, false), (4, true)];
        assert_eq!(kinds(dir.path()), expected);
    }

    #[test]
    fn files_that_are_not_asked_for_are_not_made() {
        let dir = tempdir().unwrap();
        let options = RecorderOptions { trace: false, tensorboard: false, ..options() };
        let mut recorder = Recorder::create(dir.path(), &options).unwrap();
        play(&mut recorder, 1..=1);
        recorder.finish().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_earlier_run_is_left_alone() {
        let dir = tempdir().unwrap();
        play(&mut Recorder::create(dir.path(), &options()).unwrap(), 1..=1);
        let before = fs::read(dir.path().join(METRICS_FILE)).unwrap();
        let error = Recorder::create(dir.path(), &options()).unwrap_err();
        assert!(matches!(error, MetricsError::Exists { .. }), "{error}");
        assert_eq!(fs::read(dir.path().join(METRICS_FILE)).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Recorder::create(&file.join("run"), &options()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot create {}", file.join("run").display()));
    }
}
