//! A training step: the passes, the agreement at its end, the update.

use std::time::Instant;

use thinwire_ops::square_norm;

use super::engine::Engine;
use super::error::PipelineError;
use super::exchange::{StepDown, StepUp};
use super::frames::{FrameKey, Topic};
use super::inbox::Inbox;
use super::pass::Pass;
use super::tied::{Gradients, Tie};
use crate::data::MicroBatch;
use crate::metrics::{AllReduceReport, LinkReport, StageTimes};
use crate::model::{Parameter, Part};
use crate::optim::clip_factor;

/// Steps that may be skipped one after the other before the run stops.
const MOST_SKIPPED: u32 = 10;

/// What a step did. The same on every stage, but for times and links.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// Mean loss in nats a token.
    pub loss: f64,
    /// Targets that count in the loss.
    pub tokens: usize,
    /// Learning rate.
    pub learning_rate: f64,
    /// Global gradient norm before clipping.
    pub gradient_norm: f64,
    /// Why the update was left out, if it was.
    pub skipped: Option<String>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Where they went.
    pub times: StageTimes,
    /// What the outgoing directions have carried so far.
    pub links: Vec<LinkReport>,
    /// What the stage's ranks have sent each other so far; nothing for one rank.
    pub all_reduces: Vec<AllReduceReport>,
}

impl Engine {
    /// Trains one step on `batches`, its micro-batches; `step` counts from 1.
    ///
    /// # Errors
    /// A link's failure, a neighbour that stopped, or values that are not finite (by policy).
    pub fn step(&mut self, step: u64, batches: &[MicroBatch]) -> Result<StepReport, PipelineError> {
        let begin = Instant::now();
        let before = self.link_times();
        let mut pass = Pass::new(step, batches);
        self.run_actions(&mut pass)?;

        let optimize = Instant::now();
        let (mut gradients, norms) = self.team.take_gradients()?;
        self.check_norms(&mut pass, &norms)?;
        self.clock.optimizer += optimize.elapsed().as_secs_f64();
        let verdict = self.agree_on_step(&pass, norms, &mut gradients)?;

        let learning_rate = self.settings.rates.at(step - 1);
        match &verdict.lost {
            None => {
                self.skipped_in_a_row = 0;
                self.update(step, gradients, verdict.norm, learning_rate)?;
            }
            Some(reason) => self.count_skipped(reason)?,
        }
        Ok(StepReport {
            loss: verdict.loss,
            tokens: pass.tokens(),
            learning_rate,
            gradient_norm: verdict.norm,
            skipped: verdict.lost,
            seconds: begin.elapsed().as_secs_f64(),
            times: self.take_times(&before),
            links: self.links(),
            all_reduces: self.all_reduces()?,
        })
    }

    fn check_norms(&self, pass: &mut Pass<'_>, norms: &[f64]) -> Result<(), PipelineError> {
        if let Some(error) = not_finite(self.state().0, norms, self.settings.stage, pass.step) {
            pass.lose_step(self.tolerate(error)?);
        }
        Ok(())
    }

    /// Brings all stages to one verdict, and both gradients of a tied matrix to one sum.
    fn agree_on_step(
        &mut self,
        pass: &Pass<'_>,
        norms: Vec<f64>,
        gradients: &mut Gradients,
    ) -> Result<StepDown, PipelineError> {
        let checksum = self.team.tied_checksum()?.unwrap_or_default();
        let mut tie =
            Tie::of(self.team.state().0, checksum, &mut *self.tied, pass.step, self.settings.stages);
        let share = tie.as_mut().map_or(Ok(None), |tie| tie.share(gradients))?;
        let contribute = |inbox: &mut Inbox, below: Option<StepUp>| {
            let mut up = below.unwrap_or_default();
            up.square_norms.extend(norms);
            // What a stage knows of its own says more than what it has heard.
            let lost_here = inbox.take_lost().map(|error| error.to_string());
            up.lost = lost_here.or(pass.cause()).or(up.lost).or(pass.lost_elsewhere());
            up.tied = up.tied.or(share);
            up
        };
        let decide = |mut up: StepUp| {
            let tied_gradient = tie.as_mut().map_or(Ok(None), |tie| tie.add(&mut up, gradients))?;
            let norm = up.square_norms.iter().sum::<f64>().sqrt();
            Ok(StepDown { loss: pass.loss(), norm, lost: up.lost, tied_gradient })
        };
        let key = FrameKey::control(Topic::Step, pass.step);
        let mut down = self.neighbors.agree(&mut self.inbox, key, contribute, decide)?;
        let from_head = down.tied_gradient.take();
        if let Some(tie) = &mut tie {
            tie.complete(from_head, gradients)?;
        }
        Ok(down)
    }

    fn update(&mut self, step: u64, gradients: Gradients, norm: f64, rate: f64) -> Result<(), PipelineError> {
        let begin = Instant::now();
        let clip = clip_factor(norm, self.settings.clip_norm);
        self.team.update(gradients, rate, clip)?;
        self.clock.optimizer += self.tracer.record("compute", "optimizer", begin, step, None).as_secs_f64();
        Ok(())
    }

    fn count_skipped(&mut self, reason: &str) -> Result<(), PipelineError> {
        self.skipped_in_a_row += 1;
        if self.skipped_in_a_row < MOST_SKIPPED {
            return Ok(());
        }
        Err(PipelineError::AllSkipped { count: self.skipped_in_a_row, reason: reason.to_owned() })
    }
}

/// `sum g^2` of each parameter that is trained, in order.
pub(super) fn square_norms(part: &Part, gradients: &Gradients) -> Vec<f64> {
    let norm = |(index, _): (usize, _)| gradients[index].as_ref().map_or(0.0, square_norm);
    trainable(part).map(norm).collect()
}

/// What is wrong with the first of a part's [`square_norms`] that is not finite.
pub(super) fn not_finite(part: &Part, norms: &[f64], stage: usize, step: u64) -> Option<PipelineError> {
    let bad = trainable(part).zip(norms).find(|(_, norm)| !norm.is_finite());
    bad.map(|((_, parameter), _)| {
        let parameter = parameter.name.clone();
        PipelineError::GradientNotFinite { stage, parameter, step }
    })
}

fn trainable(part: &Part) -> impl Iterator<Item = (usize, &Parameter)> {
    let params = part.params();
    params.trainable(&(0..params.len()))
}
