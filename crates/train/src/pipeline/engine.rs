//! One stage at work: steps and evaluations, with its neighbours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thinwire_codec::Codec;
use thinwire_link::{Link, LinkError};

use super::compute::{Forwarded, HostTensor};
use super::error::PipelineError;
use super::exchange::{EvalDown, Neighbors};
use super::frames::{Body, Content, FrameKey, Side, Topic};
use super::inbox::{Inbox, Mailbox};
use super::meter::{Tracer, Work};
use super::neighbor::{Codecs, Neighbor, Terms};
use super::pass::Pass;
use super::schedule::{Action, actions};
use super::stop::Stop;
use super::team::Team;
use crate::checkpoint::{FileEntry, TrainedShare};
use crate::config::{NonFinitePolicy, PipelineSchedule};
use crate::data::{DataError, MicroBatch};
use crate::memory::BoundaryMemory;
use crate::metrics::{AllReduceReport, LinkReport, SiteReport, Span, StageTimes};
use crate::model::Part;
use crate::optim::{AdamW, RateSchedule};

/// How long a stage that stops tries to tell its neighbours why.
const ABORT_PATIENCE: Duration = Duration::from_secs(2);

/// What an engine needs to know besides its part of the model.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// This stage, from 0.
    pub stage: usize,
    /// Stages in all.
    pub stages: usize,
    /// The order of forwards and backwards.
    pub schedule: PipelineSchedule,
    /// Learning rates.
    pub rates: RateSchedule,
    /// Global gradient norm to clip at; 0 is off.
    pub clip_norm: f64,
    /// What a value that is not finite does.
    pub non_finite: NonFinitePolicy,
    /// Whether spans are recorded.
    pub trace: bool,
}

/// A link to a neighbour with the codecs of its boundary.
pub struct Attachment {
    /// The link, its handshake done.
    pub link: Link,
    /// Codecs for either direction.
    pub codecs: Codecs,
    /// What its threads need to know.
    pub terms: Terms,
}

/// One stage of the pipeline.
#[derive(Debug)]
pub struct Engine {
    pub(super) settings: EngineSettings,
    pub(super) team: Team,
    pub(super) neighbors: Neighbors,
    pub(super) inbox: Inbox,
    /// Codec of a tied matrix's gradient.
    pub(super) tied: Box<dyn Codec>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) skipped_in_a_row: u32,
    pub(super) clock: StageTimes,
    stop: Stop,
    /// Keeps the inbox open when there is no neighbour.
    mailbox: Mailbox,
}

impl Engine {
    /// Starts the links' threads. `tied` is the codec of a tied matrix's gradient.
    pub fn new(
        settings: EngineSettings,
        team: Team,
        tied: Box<dyn Codec>,
        previous: Option<Attachment>,
        next: Option<Attachment>,
    ) -> Self {
        let queue = previous.iter().chain(&next).map(|attachment| attachment.terms.queue).max().unwrap_or(1);
        let (mailbox, inbox) = Mailbox::new(2 * queue);
        let tracer = Arc::new(Tracer::new(settings.trace));
        let start = |side, attachment: Attachment| {
            let Attachment { link, codecs, terms } = attachment;
            Neighbor::start(link, side, codecs, &terms, &mailbox, &tracer)
        };
        let neighbors = Neighbors {
            previous: previous.map(|attachment| start(Side::Previous, attachment)),
            next: next.map(|attachment| start(Side::Next, attachment)),
        };
        Self {
            inbox,
            settings,
            team,
            neighbors,
            tied,
            tracer,
            skipped_in_a_row: 0,
            clock: StageTimes::default(),
            stop: Stop::default(),
            mailbox,
        }
    }

    /// The stage's part of the model, and its optimizer: rank 0's share of them.
    pub fn state(&self) -> (&Part, &AdamW) {
        self.team.state()
    }

    /// The same, to be changed.
    pub fn state_mut(&mut self) -> (&mut Part, &mut AdamW) {
        self.team.state_mut()
    }

    /// What each rank trains and its optimizer's state, by rank. Values are shared with the ranks until their next update.
    ///
    /// # Errors
    /// A rank has ended.
    pub fn shares(&mut self) -> Result<Vec<TrainedShare>, PipelineError> {
        self.team.shares()
    }

    /// Has every rank change its share of the stage's part and optimizer, at the same time: what `change` gives on rank 0, or the
    /// error of the first rank that has any.
    ///
    /// # Errors
    /// A rank has ended.
    pub fn change<T: Send + 'static, E: Send + 'static>(
        &mut self,
        change: impl Fn(&mut Part, &mut AdamW) -> Result<T, E> + Clone + Send + 'static,
    ) -> Result<Result<T, E>, PipelineError> {
        self.team.change(change)
    }

    /// What the stage remembers at its boundaries, of all frames of the steps and evaluations that are over.
    pub fn memories(&self) -> Vec<BoundaryMemory> {
        self.neighbors.iter().filter_map(Neighbor::memory).cloned().collect()
    }

    /// Lets `stop` end this stage.
    pub fn heed(&mut self, stop: &Stop) {
        stop.attach(&self.mailbox);
        self.stop = stop.clone();
    }

    /// Runs every action of the schedule for one step.
    pub(super) fn run_actions(&mut self, pass: &mut Pass<'_>) -> Result<(), PipelineError> {
        let EngineSettings { schedule, stage, stages, .. } = self.settings;
        for action in actions(schedule, stage, stages, pass.batches.len() as u32) {
            self.stop.check()?;
            match action {
                Action::Forward(index) => self.forward(pass, index)?,
                Action::Backward(index) => self.backward(pass, index)?,
            }
        }
        Ok(())
    }

    fn forward(&mut self, pass: &mut Pass<'_>, index: u32) -> Result<(), PipelineError> {
        let key = FrameKey { content: Content::Forward, step: pass.step, index };
        let batch = &pass.batches[index as usize];
        let entered = match self.receive_activation(key, batch)? {
            Entered::Ids => None,
            Entered::Hidden(h) => Some(h),
            Entered::Lost { by } => {
                pass.lose(index, by);
                return self.poison_next(key);
            }
        };
        let begin = Instant::now();
        let forwarded = self.team.forward(index, batch, entered, pass.weight);
        self.clock.compute +=
            self.tracer.record("compute", "forward", begin, pass.step, Some(index)).as_secs_f64();
        match forwarded {
            Err(error) => {
                let cause = self.survive(error)?;
                pass.lose_because(index, cause);
                self.poison_next(key)
            }
            Ok(Forwarded::Hidden(tensor)) => self.send_next(key, tensor, batch),
            Ok(Forwarded::Loss(sum)) if sum.is_finite() => {
                pass.add_loss(sum, batch);
                Ok(())
            }
            Ok(Forwarded::Loss(loss)) => {
                let cause = self.tolerate(self.loss_not_finite(key, loss))?;
                pass.lose_because(index, cause);
                Ok(())
            }
        }
    }

    fn backward(&mut self, pass: &mut Pass<'_>, index: u32) -> Result<(), PipelineError> {
        let key = FrameKey { content: Content::Backward, step: pass.step, index };
        let batch = &pass.batches[index as usize];
        let upstream = match &self.neighbors.next {
            None => None,
            Some(next) => match self.inbox.wait(next, key)? {
                Body::Tensor { tensor, tag } => {
                    check_belongs(next, key, &tensor.shape, tag, batch)?;
                    Some(tensor)
                }
                Body::Poisoned => {
                    pass.lose(index, next.peer());
                    None
                }
                Body::Control(_) => unreachable!("the key names a tensor"),
            },
        };
        if pass.is_lost(index) {
            self.team.forget(index)?;
            return self.poison_previous(key);
        }
        let begin = Instant::now();
        let gradient = self.team.backward(index, upstream);
        self.clock.compute +=
            self.tracer.record("compute", "backward", begin, pass.step, Some(index)).as_secs_f64();
        let gradient = match gradient {
            Ok(gradient) => gradient,
            Err(error) => {
                let cause = self.survive(error)?;
                pass.lose_because(index, cause);
                return self.poison_previous(key);
            }
        };
        match (&self.neighbors.previous, gradient) {
            (Some(previous), Some(gradient)) => {
                delivered(previous.send(key, gradient, batch), &mut self.inbox)
            }
            _ => Ok(()),
        }
    }

    /// Evaluates `batches` through the pipeline, with the codecs of training.
    ///
    /// # Errors
    /// A link's failure, data that cannot be read, or an activation or loss that is not finite: an evaluation has no
    /// step to skip.
    pub fn evaluate(
        &mut self,
        step: u64,
        batches: impl Iterator<Item = Result<MicroBatch, DataError>>,
    ) -> Result<Evaluation, PipelineError> {
        let mut own = EvalDown { loss_sum: 0.0, tokens: 0 };
        for (index, batch) in batches.enumerate() {
            let batch = batch?;
            self.stop.check()?;
            let key = FrameKey { content: Content::Eval, step, index: index as u32 };
            let entered = match self.receive_activation(key, &batch)? {
                Entered::Ids => None,
                Entered::Hidden(h) => Some(h),
                Entered::Lost { .. } => unreachable!("evaluation frames are never poisoned"),
            };
            let begin = Instant::now();
            let forwarded = self.team.evaluate(&batch, entered)?;
            let time = self.tracer.record("compute", "evaluate", begin, step, Some(key.index));
            self.clock.compute += time.as_secs_f64();
            match forwarded {
                Forwarded::Hidden(tensor) => self.send_next(key, tensor, &batch)?,
                Forwarded::Loss(sum) if !sum.is_finite() => return Err(self.loss_not_finite(key, sum)),
                Forwarded::Loss(sum) => {
                    own.loss_sum += sum;
                    own.tokens += batch.trained() as u64;
                }
            }
        }
        let EvalDown { loss_sum, tokens } = self.agree(Topic::Eval, step, |_, _| (), |()| Ok(own))?;
        Ok(Evaluation { loss: loss_sum / tokens as f64, tokens })
    }

    /// Brings the file lists of all stages to every stage, once each has written its files.
    ///
    /// # Errors
    /// A link's failure, or a stage that could not write.
    pub fn agree_on_checkpoint(
        &mut self,
        step: u64,
        gather: impl FnOnce(Option<Vec<FileEntry>>) -> Vec<FileEntry>,
    ) -> Result<Vec<FileEntry>, PipelineError> {
        self.agree(Topic::Checkpoint, step, |_, below| gather(below), Ok)
    }

    /// Waits until every stage has committed its checkpoint: what it replaces may be removed only then.
    ///
    /// # Errors
    /// A link's failure, or a stage that could not write.
    pub fn agree_on_commit(&mut self, step: u64) -> Result<(), PipelineError> {
        self.agree(Topic::Committed, step, |_, _| (), Ok)
    }

    /// The newest step that is left when every stage has struck out, in `common`, those it does not have.
    ///
    /// # Errors
    /// A link's failure.
    pub fn agree_on_resume(
        &mut self,
        common: impl FnOnce(Option<Vec<u64>>) -> Vec<u64>,
    ) -> Result<Option<u64>, PipelineError> {
        self.agree(Topic::Resume, 0, |_, below| common(below), |steps: Vec<u64>| Ok(steps.into_iter().max()))
    }

    /// Waits until every stage has restored its part: a link's thread must not decode the first frame with a memory that is
    /// still being filled.
    ///
    /// # Errors
    /// A link's failure, or a stage that could not restore.
    pub fn agree_on_restored(&mut self) -> Result<(), PipelineError> {
        self.agree(Topic::Restored, 0, |_, _| (), Ok)
    }

    /// See [`Neighbors::agree`].
    pub(super) fn agree<Up, Down>(
        &mut self,
        topic: Topic,
        step: u64,
        contribute: impl FnOnce(&mut Inbox, Option<Up>) -> Up,
        decide: impl FnOnce(Up) -> Result<Down, PipelineError>,
    ) -> Result<Down, PipelineError>
    where
        Up: Serialize + DeserializeOwned,
        Down: Serialize + DeserializeOwned,
    {
        self.neighbors.agree(&mut self.inbox, FrameKey::control(topic, step), contribute, decide)
    }

    fn receive_activation(&mut self, key: FrameKey, batch: &MicroBatch) -> Result<Entered, PipelineError> {
        let Some(previous) = &self.neighbors.previous else { return Ok(Entered::Ids) };
        match self.inbox.wait(previous, key)? {
            Body::Tensor { tensor, tag } => {
                check_belongs(previous, key, &tensor.shape, tag, batch)?;
                Ok(Entered::Hidden(tensor))
            }
            Body::Poisoned => Ok(Entered::Lost { by: previous.peer() }),
            Body::Control(_) => unreachable!("the key names a tensor"),
        }
    }

    fn send_next(
        &mut self,
        key: FrameKey,
        tensor: HostTensor,
        batch: &MicroBatch,
    ) -> Result<(), PipelineError> {
        let next = self.neighbors.next.as_ref().expect("only the last stage has a loss instead");
        delivered(next.send(key, tensor, batch), &mut self.inbox)
    }

    fn poison_next(&mut self, key: FrameKey) -> Result<(), PipelineError> {
        match &self.neighbors.next {
            Some(next) => delivered(next.send_poisoned(key), &mut self.inbox),
            None => Ok(()),
        }
    }

    fn poison_previous(&mut self, key: FrameKey) -> Result<(), PipelineError> {
        match &self.neighbors.previous {
            Some(previous) => delivered(previous.send_poisoned(key), &mut self.inbox),
            None => Ok(()),
        }
    }

    /// What the ranks could not finish is an error, but for a value that is not finite where the policy is to skip: the cause of a
    /// lost step then.
    fn survive(&mut self, error: PipelineError) -> Result<String, PipelineError> {
        if !error.is_of_ranks_not_finite() {
            return Err(error);
        }
        let cause = self.tolerate(error)?;
        self.team.rejoin()?;
        Ok(cause)
    }

    fn loss_not_finite(&self, frame: FrameKey, loss: f64) -> PipelineError {
        PipelineError::LossNotFinite { stage: self.settings.stage, frame, loss }
    }

    /// Under `stop` a value that is not finite is an error, under `skip-step` the cause of a lost step.
    pub(super) fn tolerate(&self, error: PipelineError) -> Result<String, PipelineError> {
        match self.settings.non_finite {
            NonFinitePolicy::Stop => Err(error),
            NonFinitePolicy::SkipStep => Ok(crate::text::chain(&error)),
        }
    }

    /// Times since the last call.
    pub(super) fn take_times(&mut self, before: &LinkTimes) -> StageTimes {
        let after = self.link_times();
        let own = std::mem::take(&mut self.clock);
        StageTimes {
            encode: after.encode - before.encode,
            send: after.send - before.send,
            decode: after.decode - before.decode,
            wait: self.inbox.take_waited().as_secs_f64(),
            ..own
        }
    }

    pub(super) fn link_times(&self) -> LinkTimes {
        let total = |work| self.neighbors.iter().map(|neighbor| neighbor.seconds(work)).sum();
        LinkTimes { encode: total(Work::Encode), send: total(Work::Send), decode: total(Work::Decode) }
    }

    /// What the outgoing directions have carried so far.
    pub fn links(&self) -> Vec<LinkReport> {
        self.neighbors.iter().map(Neighbor::report).collect()
    }

    /// What the ranks have sent each other so far, activations first; nothing for one rank.
    ///
    /// # Errors
    /// A rank has ended.
    pub fn all_reduces(&mut self) -> Result<Vec<AllReduceReport>, PipelineError> {
        self.team.all_reduces()
    }

    /// What the ranks have added up so far, by direction and site; nothing for one rank.
    ///
    /// # Errors
    /// A rank has ended.
    pub fn sums(&mut self) -> Result<Vec<SiteReport>, PipelineError> {
        self.team.sums()
    }

    /// What the threads did since the last call.
    pub fn take_spans(&self) -> Vec<Span> {
        self.tracer.take()
    }

    /// Ends well: what is queued is sent, and the links are closed in order.
    pub fn close(self) {
        self.neighbors.into_iter().for_each(Neighbor::close);
    }

    /// Ends badly: both neighbours learn why. Returns the error that says most.
    pub fn abort(self, error: PipelineError) -> PipelineError {
        let error = self.inbox.explain(error);
        let reason = reason_to_pass_on(&error, self.settings.stage);
        self.abort_because(&reason);
        error
    }

    /// Tells both neighbours that this stage stops because of `reason`.
    pub fn abort_because(self, reason: &str) {
        for neighbor in self.neighbors.into_iter() {
            neighbor.abort(reason, ABORT_PATIENCE);
        }
    }
}

/// The result of an evaluation, the same on every stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Mean loss in nats a token.
    pub loss: f64,
    /// Tokens evaluated.
    pub tokens: u64,
}

/// What the links' threads have spent, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkTimes {
    encode: f64,
    send: f64,
    decode: f64,
}

enum Entered {
    Ids,
    Hidden(HostTensor),
    Lost { by: usize },
}

/// A reason keeps the stage it came from, however many stages it passes.
fn reason_to_pass_on(error: &PipelineError, stage: usize) -> String {
    match error {
        PipelineError::Link(LinkError::PeerAborted { reason, .. }) => reason.clone(),
        error => format!("stage {stage}: {}", crate::text::chain(error)),
    }
}

fn delivered(sent: bool, inbox: &mut Inbox) -> Result<(), PipelineError> {
    if sent { Ok(()) } else { Err(inbox.failure()) }
}

/// Checks that a tensor was computed from the samples this stage has at hand.
fn check_belongs(
    from: &Neighbor,
    frame: FrameKey,
    shape: &[usize; 3],
    tag: u64,
    batch: &MicroBatch,
) -> Result<(), PipelineError> {
    let mismatch = |what, found: String, expected: String| {
        Err(PipelineError::Mismatch { peer: from.peer(), frame, what, found, expected })
    };
    if shape[..2] != [batch.samples, batch.tokens] {
        return mismatch(
            "samples x tokens",
            format!("{:?}", &shape[..2]),
            format!("{:?}", [batch.samples, batch.tokens]),
        );
    }
    if tag != batch.tag {
        return mismatch(
            "the fingerprint of the samples",
            format!("{tag:016x}"),
            format!("{:016x}", batch.tag),
        );
    }
    Ok(())
}
