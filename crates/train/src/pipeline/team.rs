//! The ranks of a stage: each has a share of every layer, and all do the same at the same time.
//!
//! Rank 0 leads: it runs in the stage's thread, and links, files and people know it alone. The others follow, each on a thread of
//! its own, and mirror every call. They meet in the all-reduces of the model itself ([`TensorGroup`]), so what a rank cannot
//! finish ends the pass of all of them. A stage of one rank has a leader alone, and nothing is copied for followers.
//!
//! [`TensorGroup`]: crate::tensor_parallel::TensorGroup

mod follower;
mod member;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use burn::tensor::Tensor;
use crc32fast::Hasher;
use thinwire_collective::{CollectiveError, Group, Settings, memory};

use self::follower::Follower;
use self::member::{Member, Piece, Whole, values};
use super::ChainStage;
use super::compute::{Forwarded, HostTensor};
use super::error::PipelineError;
use super::tied::Gradients;
use crate::checkpoint::TrainedShare;
use crate::data::MicroBatch;
use crate::metrics::{AllReduceReport, Direction, SiteReport};
use crate::model::Part;
use crate::optim::AdamW;
use crate::tensor_parallel::SiteStatistics;

/// The ranks of one stage.
#[derive(Debug)]
pub struct Team {
    stage: usize,
    // In front of the followers, so that it leaves the group before they are waited for.
    lead: Member,
    followers: Vec<Follower>,
    /// Longest wait of one rank for another.
    deadline: Duration,
}

/// Ends of a group for `ranks` ranks, in their order.
pub(crate) fn groups(ranks: usize, deadline: Duration) -> Result<Vec<Group>, CollectiveError> {
    memory::group(ranks, &Settings { deadline, ..Settings::default() })
}

impl Team {
    /// Starts the followers of stage `stage`. `shares` are in the order of the ranks; those of more than one have a group, whose
    /// ranks wait for each other no longer than `deadline`.
    ///
    /// # Panics
    /// When there is none.
    pub fn new(stage: usize, shares: impl IntoIterator<Item = ChainStage>, deadline: Duration) -> Self {
        let mut members = shares.into_iter().map(Member::new);
        let lead = members.next().expect("a stage has a rank");
        Self { stage, lead, followers: members.map(Follower::start).collect(), deadline }
    }

    /// Joins the ranks anew after a pass that failed and left all of them well.
    pub(super) fn rejoin(&mut self) -> Result<(), PipelineError> {
        let failed = |source| PipelineError::Ranks { stage: self.stage, source };
        let mut ends = groups(1 + self.followers.len(), self.deadline).map_err(failed)?.into_iter();
        if let Some(end) = ends.next() {
            self.lead.rejoin(end);
        }
        let told = self.followers.iter().zip(ends).map(|(follower, end)| {
            follower.ask(move |member| {
                member.rejoin(end);
                Ok(())
            })
        });
        let told = told.collect();
        self.settle(told, Ok(())).map(drop)
    }

    /// The forward pass of a micro-batch; see [`Compute::forward`](super::Compute::forward).
    pub(super) fn forward(
        &mut self,
        index: u32,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
        weight: f32,
    ) -> Result<Forwarded, PipelineError> {
        let told = self.tell(|| {
            let (batch, entered) = (batch.clone(), entered.clone());
            move |member| member.forward(index, &batch, entered, weight)
        });
        let own = self.lead.forward(index, batch, entered, weight);
        self.settle(told, own).map(|(own, _)| own)
    }

    /// The backward pass of a micro-batch; see [`Compute::backward`](super::Compute::backward).
    pub(super) fn backward(
        &mut self,
        index: u32,
        upstream: Option<HostTensor>,
    ) -> Result<Option<HostTensor>, PipelineError> {
        let told = self.tell(|| {
            let upstream = upstream.clone();
            move |member| member.backward(index, upstream)
        });
        let own = self.lead.backward(index, upstream);
        self.settle(told, own).map(|(own, _)| own)
    }

    /// A forward pass without a graph; see [`Compute::evaluate`](super::Compute::evaluate).
    pub(super) fn evaluate(
        &mut self,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
    ) -> Result<Forwarded, PipelineError> {
        let told = self.tell(|| {
            let (batch, entered) = (batch.clone(), entered.clone());
            move |member| member.evaluate(&batch, entered)
        });
        let own = self.lead.evaluate(batch, entered);
        self.settle(told, own).map(|(own, _)| own)
    }

    /// Gives up a micro-batch that is lost.
    pub(super) fn forget(&mut self, index: u32) -> Result<(), PipelineError> {
        self.all(move |member| {
            member.forget(index);
            Ok(())
        })
        .map(drop)
    }

    /// Ends the passes of a step: the gradients of rank 0's share, in parameter order, and `sum g^2` of each parameter that is
    /// trained, over all ranks. A tied matrix whose other end is on another stage has its whole gradient.
    pub(super) fn take_gradients(&mut self) -> Result<(Gradients, Vec<f64>), PipelineError> {
        let squares = self.all(|member| Ok(member.end_passes()))?;
        let mut total = squares[0].clone();
        for (at, (_, parameter)) in self.lead.parameters().enumerate() {
            if parameter.partial || !parameter.slice.is_whole() {
                total[at] = squares.iter().map(|squares| squares[at]).sum();
            }
        }
        self.sum_partial(&mut total)?;
        let Some(at) = self.split_tie() else { return Ok((self.lead.give_gradients(), total)) };
        let whole = self.join(at)?;
        let mut gradients = self.lead.give_gradients();
        gradients[at] = whole;
        Ok((gradients, total))
    }

    /// Adds up the gradients of parameters that every rank has whole but sees a share of, unless one is not finite: the squares
    /// tell which, and a collective could not.
    fn sum_partial(&mut self, squares: &mut [f64]) -> Result<(), PipelineError> {
        let partial = self.lead.parameters().enumerate().filter(|(_, (_, parameter))| parameter.partial);
        let partial: Vec<usize> = partial.map(|(at, _)| at).collect();
        if partial.is_empty() || partial.iter().any(|&at| !squares[at].is_finite()) {
            return Ok(());
        }
        let sums = self.all(Member::sum_partial)?;
        partial.iter().zip(&sums[0]).for_each(|(&at, square)| squares[at] = *square);
        Ok(())
    }

    /// The CRC-32 of the whole of a tied matrix whose other end is on another stage.
    pub(super) fn tied_checksum(&mut self) -> Result<Option<u32>, PipelineError> {
        let rows = self.all(|member| Ok(member.checksum()))?;
        // Ranks have the rows one behind the other.
        let whole = rows.into_iter().flatten().reduce(|mut whole, rows| {
            whole.combine(&rows);
            whole
        });
        Ok(whole.map(Hasher::finalize))
    }

    /// Updates every rank's share. `gradients` are what [`Team::take_gradients`] gave, with the sum of a tied matrix's.
    pub(super) fn update(&mut self, gradients: Gradients, rate: f64, clip: f64) -> Result<(), PipelineError> {
        let at = self.split_tie();
        let whole = at.and_then(|at| Some(Whole { at, values: Arc::new(values(gradients[at].as_ref()?)) }));
        self.lead.set_gradients(gradients);
        self.all(move |member| {
            if let Some(whole) = &whole {
                member.take_piece(whole);
            }
            member.update(rate, clip);
            Ok(())
        })
        .map(drop)
    }

    /// What the ranks have sent each other so far, activations first; nothing for one rank.
    pub(super) fn all_reduces(&mut self) -> Result<Vec<AllReduceReport>, PipelineError> {
        if self.followers.is_empty() {
            return Ok(Vec::new());
        }
        let statistics = self.all(|member| Ok(member.statistics()))?;
        Ok([Direction::Forward, Direction::Backward]
            .map(|direction| report(self.stage, direction, &statistics))
            .to_vec())
    }

    /// What the ranks have added up so far, by direction and site; nothing for one rank.
    pub(super) fn sums(&mut self) -> Result<Vec<SiteReport>, PipelineError> {
        let statistics = self.all(|member| Ok(member.statistics()))?;
        let mut ranks = statistics.into_iter();
        let mut together = ranks.next().unwrap_or_default();
        for rank in ranks {
            together.iter_mut().zip(&rank).for_each(|(site, other)| site.merge(other));
        }
        Ok(together.iter().map(|site| site.report(self.stage)).collect())
    }

    /// What rank 0 has of the stage's part of the model, and its optimizer.
    pub(super) fn state(&self) -> (&Part, &AdamW) {
        self.lead.state()
    }

    /// The same, to be changed.
    pub(super) fn state_mut(&mut self) -> (&mut Part, &mut AdamW) {
        self.lead.state_mut()
    }

    /// What each rank trains and its optimizer's state, by rank. Values are shared with the ranks until their next update.
    pub(super) fn shares(&mut self) -> Result<Vec<TrainedShare>, PipelineError> {
        self.all(|member| Ok(TrainedShare::of(member.state())))
    }

    /// Has every rank change its share; what `change` gives on rank 0, or the error of the first one that has any.
    pub(super) fn change<T: Send + 'static, E: Send + 'static>(
        &mut self,
        change: impl Fn(&mut Part, &mut AdamW) -> Result<T, E> + Clone + Send + 'static,
    ) -> Result<Result<T, E>, PipelineError> {
        let results = self.all(move |member| {
            let (part, optimizer) = member.state_mut();
            Ok(change(part, optimizer))
        })?;
        let results: Result<Vec<T>, E> = results.into_iter().collect();
        Ok(results.map(|mut results| results.swap_remove(0)))
    }

    /// The place of a tied matrix whose other end is on another stage, where each rank has a piece of it.
    fn split_tie(&self) -> Option<usize> {
        let (embedding, head) = self.state().0.tied();
        embedding.xor(head).filter(|_| !self.followers.is_empty())
    }

    /// The whole gradient of the parameter at `at`; `None` when the step is lost.
    fn join(&mut self, at: usize) -> Result<Option<Tensor<1>>, PipelineError> {
        let pieces: Option<Vec<Piece>> =
            self.all(move |member| Ok(member.gradient(at)))?.into_iter().collect();
        let params = self.lead.state().0.params();
        Ok(pieces.map(|pieces| {
            let mut whole = vec![0.0; pieces[0].0.whole().iter().product()];
            for (slice, piece) in &pieces {
                slice.put(piece, &mut whole);
            }
            params.upload(whole)
        }))
    }

    /// Has every rank do `work`; what they give, by rank.
    fn all<T: Send + 'static>(
        &mut self,
        work: impl Fn(&mut Member) -> Result<T, CollectiveError> + Clone + Send + 'static,
    ) -> Result<Vec<T>, PipelineError> {
        let told = self.tell(|| work.clone());
        let own = work(&mut self.lead);
        let (own, mut others) = self.settle(told, own)?;
        others.insert(0, own);
        Ok(others)
    }

    /// Gives each follower a job of its own.
    fn tell<T: Send + 'static, J>(&self, job: impl Fn() -> J) -> Vec<Receiver<T>>
    where
        J: FnOnce(&mut Member) -> T + Send + 'static,
    {
        self.followers.iter().map(|follower| follower.ask(job())).collect()
    }

    /// Waits for all followers, whatever the leader's result is: what they and it give, or the error that says most.
    fn settle<T, U>(
        &mut self,
        told: Vec<Receiver<Result<U, CollectiveError>>>,
        own: Result<T, CollectiveError>,
    ) -> Result<(T, Vec<U>), PipelineError> {
        let stage = self.stage;
        let failed = |source| PipelineError::Ranks { stage, source };
        let (own, mut failure) = match own {
            Ok(own) => (Some(own), None),
            Err(error) => (None, Some(failed(error))),
        };
        let mut answers = Vec::with_capacity(told.len());
        for (answer, (rank, follower)) in told.into_iter().zip((1..).zip(&mut self.followers)) {
            let error = match answer.recv() {
                Ok(Ok(answer)) => {
                    answers.push(answer);
                    continue;
                }
                Ok(Err(error)) => failed(error),
                Err(_) => {
                    let reason = follower.end().to_owned();
                    PipelineError::RankEnded { stage, rank, reason }
                }
            };
            failure = Some(weightier(failure, error));
        }
        match (own, failure) {
            (Some(own), None) => Ok((own, answers)),
            (_, failure) => Err(failure.expect("a leader without a result has an error")),
        }
    }
}

/// What ranks with these `statistics`, by rank and site, have sent in one direction.
fn report(stage: usize, direction: Direction, statistics: &[Vec<SiteStatistics>]) -> AllReduceReport {
    let of_rank = |sites: &Vec<SiteStatistics>, count: fn(&SiteStatistics) -> u64| -> u64 {
        sites.iter().filter(|site| site.direction == direction).map(count).sum()
    };
    let of_all = |count| statistics.iter().map(|sites| of_rank(sites, count)).sum();
    AllReduceReport {
        stage,
        ranks: statistics.len(),
        direction,
        // The ranks make the same calls.
        calls: of_rank(&statistics[0], |site| site.calls),
        elements: of_rank(&statistics[0], |site| site.values),
        bytes: of_all(|site| site.sent_bytes),
        f32_bytes: 4 * of_all(|site| site.sent_values),
    }
}

/// Of two errors of one pass the one of the rank that it began with: others only heard of it. The first, if they tell alike.
fn weightier(earlier: Option<PipelineError>, later: PipelineError) -> PipelineError {
    let weight = |error: &PipelineError| match error {
        PipelineError::RankEnded { .. } => 3,
        PipelineError::Ranks { source: CollectiveError::GaveUp { .. }, .. } => 0,
        PipelineError::Ranks { source: CollectiveError::Left { .. }, .. } => 1,
        _ => 2,
    };
    match earlier {
        Some(earlier) if weight(&earlier) >= weight(&later) => earlier,
        _ => later,
    }
}
