//! One rank's end of all sums of a model.

use std::sync::{Arc, Mutex, MutexGuard};

use burn::tensor::{Int, Tensor};
use thinwire_collective::{AllReduceSpec, CollectiveError, Group};
use thinwire_ops::{HostFn, cross_entropy_of_columns, on_host};

use super::rerun::{Rerun, Sums};
use super::state::State;
use super::{Site, SiteStatistics};
use crate::metrics::Direction;

/// What one rank needs to compute its share of a model with the others. All ranks run the same passes in the same order.
///
/// Compressed sums give errors back, but not from one pass to the next: whoever runs passes says where they
/// [begin](TensorGroup::begin_forward). A pass that fails goes on with zeros and without the others, as no graph can be left in the
/// middle; whoever runs it asks [`TensorGroup::check`] afterwards.
///
/// Gradients need no factor against vanishing scales (Echo, section 5.4): every message has a power of two of its own.
#[derive(Debug)]
pub struct TensorGroup {
    rank: usize,
    ranks: usize,
    state: Mutex<State>,
}

impl TensorGroup {
    /// The rank at this end of `group`, which adds up as `spec` says.
    pub fn new(group: Group, spec: AllReduceSpec) -> Arc<Self> {
        Self::with_gradients(group, spec, spec)
    }

    /// The same, but gradients are added up as `gradients` says.
    pub fn with_gradients(group: Group, activations: AllReduceSpec, gradients: AllReduceSpec) -> Arc<Self> {
        let (rank, ranks) = (group.rank(), group.ranks());
        Arc::new(Self { rank, ranks, state: Mutex::new(State::new(group, activations, gradients)) })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// A forward pass begins: the errors of the one before are forgotten.
    pub fn begin_forward(&self) {
        self.lock().begin(Direction::Forward);
    }

    /// A backward pass begins.
    pub fn begin_backward(&self) {
        self.lock().begin(Direction::Backward);
    }

    /// Whether all passes so far have gone well.
    ///
    /// # Errors
    /// The first failure of a collective: what came out since is worth nothing, and no further pass can go well.
    pub fn check(&self) -> Result<(), CollectiveError> {
        self.lock().failure().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// From now on every compressed sum is made a second time, exactly, to tell the error of the first. It changes no result.
    /// All ranks do so from the same call on.
    pub fn measure_errors(&self) {
        self.lock().measure_errors();
    }

    /// From now on sums are exact and not counted, or again as they were asked for. All ranks do so from the same call on.
    pub fn set_exact(&self, exact: bool) {
        self.lock().set_exact(exact);
    }

    /// What this rank has added up so far, by site.
    pub fn statistics(&self) -> Vec<SiteStatistics> {
        self.lock().statistics()
    }

    /// `x` as it is; its gradient is the sum of all ranks' gradients of the result. Stands where all ranks begin to use a tensor
    /// that they all have, each for its own columns: Megatron's `f`.
    pub fn enter(self: &Arc<Self>, x: Tensor<2>, site: Site) -> Tensor<2> {
        on_host(x, None, Some(self.sum(site, Direction::Backward)))
    }

    /// The sum of all ranks' `x`, the same bits on every rank; its gradient passes through. Stands where each rank has a
    /// summand: Megatron's `g`.
    pub fn reduce(self: &Arc<Self>, x: Tensor<2>, site: Site) -> Tensor<2> {
        on_host(x, Some(self.sum(site, Direction::Forward)), None)
    }

    /// The losses `[rows]`, in nats, of `logits: [rows, columns]`, this rank's columns of the vocabulary from `first` on:
    /// see [`cross_entropy_of_columns`]. What is gathered travels exactly.
    pub fn cross_entropy(
        self: &Arc<Self>,
        logits: Tensor<2>,
        first: usize,
        targets: Tensor<1, Int>,
        vocab: usize,
    ) -> Tensor<1> {
        let group = self.clone();
        let gather = HostFn::new(move |shares| group.gather(&shares));
        cross_entropy_of_columns(logits, first, targets, vocab, gather)
    }

    /// All ranks' `values`, as many each, one rank's behind the other's, exactly; zeros after a failure.
    pub fn gather(&self, values: &[f32]) -> Vec<f32> {
        self.lock().gather(values)
    }

    /// The sum of all ranks' `values`, exactly, the same bits on every rank; zeros after a failure.
    pub fn sum_exactly(&self, values: &[f32]) -> Vec<f32> {
        self.lock().sum_exactly(values)
    }

    /// Goes on at the rank's end of a new `group` of the same ranks, all of them between two passes: what failed is forgotten.
    ///
    /// # Panics
    /// When it is the end of another rank.
    pub fn rejoin(&self, group: Group) {
        assert_eq!([group.rank(), group.ranks()], [self.rank, self.ranks], "rank and ranks of a group");
        self.lock().rejoin(group);
    }

    /// Runs a piece of a forward pass that will be run again: its result, and the sums in it.
    pub fn record<T>(&self, piece: impl FnOnce() -> T) -> (T, Sums) {
        self.with(Rerun::Recording(Sums::default()), piece)
    }

    /// Runs a piece of a forward pass again, with the `sums` of the first time: nothing is sent, and the errors that sums give back
    /// are left as they are.
    ///
    /// # Panics
    /// When it is not the same piece.
    pub fn replay<T>(&self, sums: Sums, piece: impl FnOnce() -> T) -> T {
        self.with(Rerun::Replaying(sums), piece).0
    }

    fn with<T>(&self, rerun: Rerun, piece: impl FnOnce() -> T) -> (T, Sums) {
        *self.lock().rerun() = rerun;
        let result = piece(); // which takes the lock itself
        (result, std::mem::take(self.lock().rerun()).into_sums())
    }

    fn sum(self: &Arc<Self>, site: Site, direction: Direction) -> HostFn {
        let group = self.clone();
        HostFn::new(move |x| group.lock().all_reduce(site, direction, x))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a collective returns its errors")
    }
}
