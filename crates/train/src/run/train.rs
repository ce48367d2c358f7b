//! One stage's life: steps, evaluations, checkpoints.

use std::path::PathBuf;
use std::time::Instant;

use super::{Links, RunError, Setup};
use crate::checkpoint::{self, FileEntry, Manifest, Results, RunFacts, SavedMemories};
use crate::data::{Dataset, Summary};
use crate::memory::{BoundaryMemory, End};
use crate::metrics::Event;
use crate::pipeline::{Engine, Evaluation, Stop};
use crate::resident;

/// Whether the run starts from a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// From the seed.
    Fresh,
    /// From the newest checkpoint that all stages have.
    Newest,
}

/// How a run ended, the same on every stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Steps done, those before a resume included.
    pub steps: u64,
    /// Mean loss of the last step.
    pub loss: f64,
    /// The last evaluation.
    pub evaluation: Option<Evaluation>,
}

impl Outcome {
    fn of(manifest: &Manifest) -> Self {
        let Results { loss, heldout_loss, heldout_tokens: tokens } = manifest.results;
        let evaluation = heldout_loss.map(|loss| Evaluation { loss, tokens });
        Self { steps: manifest.step, loss: loss.unwrap_or(f64::NAN), evaluation }
    }

    fn results(&self) -> Results {
        Results {
            loss: Some(self.loss).filter(|loss| loss.is_finite()),
            heldout_loss: self.evaluation.map(|evaluation| evaluation.loss),
            heldout_tokens: self.evaluation.map_or(0, |evaluation| evaluation.tokens),
        }
    }
}

/// Receives what happens.
pub type Emit<'a> = dyn FnMut(Event) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Runs stage `stage` of `setup` to its end, or until `stop` is asked for it.
///
/// # Errors
/// Anything that ends the run early; both neighbours have then been told why.
pub fn train(
    setup: Setup,
    stage: usize,
    links: Links,
    resume: Resume,
    stop: &Stop,
    emit: &mut Emit<'_>,
) -> Result<Outcome, RunError> {
    let mut engine = setup.engine(stage, links)?;
    engine.heed(stop);
    match Life::new(setup, stage, emit).and_then(|mut life| life.run(&mut engine, resume)) {
        Ok(outcome) => {
            engine.close();
            Ok(outcome)
        }
        Err(RunError::Pipeline(error)) => Err(engine.abort(error).into()),
        Err(error) => {
            engine.abort_because(&format!("stage {stage}: {}", crate::text::chain(&error)));
            Err(error)
        }
    }
}

struct Life<'a, 'e> {
    setup: Setup,
    stage: usize,
    folder: PathBuf,
    facts: RunFacts,
    emit: &'a mut Emit<'e>,
}

impl<'a, 'e> Life<'a, 'e> {
    fn new(setup: Setup, stage: usize, emit: &'a mut Emit<'e>) -> Result<Self, RunError> {
        let facts = setup.facts()?;
        let folder = setup.config.run.dir.join(super::CHECKPOINTS);
        Ok(Self { setup, stage, folder, facts, emit })
    }

    fn run(&mut self, engine: &mut Engine, resume: Resume) -> Result<Outcome, RunError> {
        let (part, _) = engine.state();
        let parameters = part.units().map(|(unit, _)| part.architecture().parameters(unit)).sum();
        self.emit(Event::Started {
            stage: self.stage,
            stages: self.setup.stages(),
            layers: self.setup.map.stages()[self.stage].to_string(),
            parameters,
            ranks: self.setup.config.tensor_parallel.ranks,
            threads: rayon::current_num_threads(),
        })?;
        self.tell_damage()?;
        let mut outcome = match resume {
            Resume::Fresh => Outcome { steps: 0, loss: f64::NAN, evaluation: None },
            Resume::Newest => self.resume(engine)?,
        };
        let begin = Instant::now();
        let steps = self.setup.config.train.steps;
        if outcome.steps >= steps {
            let text = format!("the run has {} of {steps} steps: nothing is left to do", outcome.steps);
            self.emit(Event::Warning { stage: self.stage, text })?;
        }
        let mut tokens = 0;
        for step in outcome.steps + 1..=steps {
            let (loss, trained) = self.step(engine, step)?;
            (outcome.steps, outcome.loss) = (step, loss);
            tokens += trained;
            if due(step, self.setup.config.eval.every, steps) {
                outcome.evaluation = self.evaluate(engine, step)?.or(outcome.evaluation);
            }
            if due(step, self.setup.config.checkpoint.every, steps) {
                self.checkpoint(engine, &outcome)?;
            }
        }
        self.emit(Event::Finished {
            stage: self.stage,
            steps: outcome.steps,
            final_loss: outcome.loss,
            heldout_perplexity: outcome.evaluation.map(|evaluation| evaluation.loss.exp()),
            tokens,
            seconds: begin.elapsed().as_secs_f64(),
            peak_memory: resident::peak(),
            links: engine.links(),
            all_reduces: engine.all_reduces()?,
            sums: engine.sums()?,
        })?;
        Ok(outcome)
    }

    /// Every stage has the same data: one tells what is wrong with it.
    fn tell_damage(&mut self) -> Result<(), RunError> {
        let Setup { batches, heldout, .. } = &self.setup;
        let data = [("training data", Some(batches.dataset())), ("held-out data", heldout.as_ref())];
        let summaries = data.map(|(name, data)| (name, data.map(Dataset::summary)));
        let damaged = |(name, summary): (_, Option<Summary>)| {
            let summary = summary.filter(|summary| summary.damage.damaged > 0)?;
            Some(format!("{name}: {summary}"))
        };
        if self.stage == 0 {
            for text in summaries.into_iter().filter_map(damaged) {
                self.emit(Event::Warning { stage: 0, text })?;
            }
        }
        Ok(())
    }

    fn step(&mut self, engine: &mut Engine, step: u64) -> Result<(f64, u64), RunError> {
        let batches = self.setup.batches.step(step - 1);
        let batches = batches.map_err(|source| RunError::Data { key: "data.train", source })?;
        let report = engine.step(step, &batches)?;
        if let Some(cause) = &report.skipped {
            self.emit(Event::Warning { stage: self.stage, text: format!("step {step} skipped: {cause}") })?;
        }
        self.emit(Event::Step {
            stage: self.stage,
            step,
            loss: report.loss,
            tokens: report.tokens as u64,
            learning_rate: report.learning_rate,
            gradient_norm: report.gradient_norm,
            skipped: report.skipped.is_some(),
            seconds: report.seconds,
            times: report.times,
            links: report.links,
            all_reduces: report.all_reduces,
        })?;
        let spans = engine.take_spans();
        if !spans.is_empty() {
            self.emit(Event::Spans { stage: self.stage, spans })?;
        }
        Ok((report.loss, report.tokens as u64))
    }

    fn evaluate(&mut self, engine: &mut Engine, step: u64) -> Result<Option<Evaluation>, RunError> {
        let Some(heldout) = &self.setup.heldout else { return Ok(None) };
        let eval = &self.setup.config.eval;
        let begin = Instant::now();
        let first = self.setup.first_heldout_sample();
        let batches = heldout.evaluation(eval.tokens, eval.micro_batch);
        let batches = batches.map(|batch| batch.map(|batch| batch.counted_from(first)));
        let result = engine.evaluate(step, batches)?;
        let seconds = begin.elapsed().as_secs_f64();
        self.emit(Event::Eval {
            stage: self.stage,
            step,
            loss: result.loss,
            perplexity: result.loss.exp(),
            tokens: result.tokens,
            seconds,
        })?;
        Ok(Some(result))
    }

    fn checkpoint(&mut self, engine: &mut Engine, outcome: &Outcome) -> Result<(), RunError> {
        let begin = Instant::now();
        let step = outcome.steps;
        let shares = engine.shares()?;
        let own =
            checkpoint::write_shares(&self.folder, step, engine.state().0, &shares, &engine.memories())?;
        drop(shares);
        let bytes = own.iter().map(|file| file.bytes).sum();
        let gather =
            |below: Option<Vec<FileEntry>>| below.unwrap_or_default().into_iter().chain(own).collect();
        let files = engine.agree_on_checkpoint(step, gather)?;
        let manifest = Manifest::new(step, outcome.results(), self.facts.clone(), files)?;
        checkpoint::commit(&self.folder, &manifest)?;
        engine.agree_on_commit(step)?;
        checkpoint::prune(&self.folder, self.setup.config.checkpoint.keep)?;
        self.emit(Event::Checkpoint {
            stage: self.stage,
            step,
            path: checkpoint::step_folder(&self.folder, step).display().to_string(),
            bytes,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// Restores the newest checkpoint that all stages have, and returns how far the run had come.
    fn resume(&mut self, engine: &mut Engine) -> Result<Outcome, RunError> {
        let ends = engine.memories();
        let own = self.own_steps(&ends)?;
        let common = |below: Option<Vec<u64>>| match below {
            Some(below) => below.into_iter().filter(|step| own.contains(step)).collect(),
            None => own,
        };
        let newest = engine.agree_on_resume(common)?;
        let step =
            newest.ok_or_else(|| RunError::NothingToResume { folder: self.folder.display().to_string() })?;
        let (memories, unknown) = SavedMemories::check(&self.folder, step, &ends)?;
        let (folder, facts) = (self.folder.clone(), self.facts.clone());
        let manifest = engine
            .change(move |part, optimizer| checkpoint::restore(&folder, step, part, optimizer, &facts))??;
        memories.restore()?;
        engine.agree_on_restored()?;
        // Both ends of a boundary find the same, and one tells.
        for BoundaryMemory { before, .. } in unknown.iter().filter(|end| end.end == End::Sent) {
            let text = format!(
                "the checkpoint has nothing that the boundary in front of block {before} could remember: its samples are sent \
                 as for the first time"
            );
            self.emit(Event::Warning { stage: self.stage, text })?;
        }
        self.forget_after(step)?;
        self.emit(Event::Resumed { stage: self.stage, step })?;
        Ok(Outcome::of(&manifest))
    }

    /// The checkpoints that this stage, with its `ends` of boundaries, can go on from.
    fn own_steps(&self, ends: &[BoundaryMemory]) -> Result<Vec<u64>, RunError> {
        let mut own = Vec::new();
        for step in checkpoint::available(&self.folder, &self.setup.map.stages()[self.stage])? {
            if checkpoint::has_memories(&self.folder, step, ends)? {
                own.push(step);
            }
        }
        Ok(own)
    }

    /// Removes the checkpoints after `step`, which not all stages have: they would count among the newest.
    fn forget_after(&self, step: u64) -> Result<(), RunError> {
        while let Some(later) = checkpoint::latest(&self.folder)?.filter(|newest| newest.step > step) {
            checkpoint::remove(&self.folder, later.step)?;
        }
        Ok(())
    }

    fn emit(&mut self, event: Event) -> Result<(), RunError> {
        (self.emit)(event).map_err(RunError::Events)
    }
}

/// Whether something that happens every `every` steps, and at the end, happens after `step`.
fn due(step: u64, every: u64, steps: u64) -> bool {
    step == steps || (every > 0 && step.is_multiple_of(every))
}
