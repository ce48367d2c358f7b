//! One rank of a stage, and what it does when all do.

use std::sync::Arc;

use burn::tensor::Tensor;
use crc32fast::Hasher;
use thinwire_collective::{CollectiveError, Group};
use thinwire_ops::square_norm;

use super::super::ChainStage;
use super::super::compute::{Compute, Forwarded, HostTensor};
use super::super::step::square_norms;
use super::super::tied::{Gradients, checksum, tie_here};
use crate::data::MicroBatch;
use crate::model::{Parameter, Part, Slice};
use crate::optim::AdamW;
use crate::tensor_parallel::{SiteStatistics, TensorGroup};

/// One rank's share of a stage.
#[derive(Debug)]
pub(super) struct Member {
    compute: Compute,
    optimizer: AdamW,
    /// Of a step at its end.
    gradients: Gradients,
}

/// What a rank has of a tensor.
pub(super) type Piece = (Slice, Vec<f32>);

/// The whole gradient of the parameter at a place.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) at: usize,
    pub(super) values: Arc<Vec<f32>>,
}

impl Member {
    pub(super) fn new(share: ChainStage) -> Self {
        let ChainStage { compute, optimizer } = share;
        Self { compute, optimizer, gradients: Vec::new() }
    }

    pub(super) fn forward(
        &mut self,
        index: u32,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
        weight: f32,
    ) -> Result<Forwarded, CollectiveError> {
        let forwarded = self.compute.forward(index, batch, entered, weight);
        self.check(forwarded)
    }

    pub(super) fn backward(
        &mut self,
        index: u32,
        upstream: Option<HostTensor>,
    ) -> Result<Option<HostTensor>, CollectiveError> {
        let gradient = self.compute.backward(index, upstream);
        self.check(gradient)
    }

    pub(super) fn evaluate(
        &mut self,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
    ) -> Result<Forwarded, CollectiveError> {
        let forwarded = self.compute.evaluate(batch, entered);
        self.check(forwarded)
    }

    pub(super) fn forget(&mut self, index: u32) {
        self.compute.forget(index);
    }

    /// Ends the passes of a step: its gradients are at hand now. `sum g^2` of what this rank has of each parameter that is
    /// trained, in order.
    pub(super) fn end_passes(&mut self) -> Vec<f64> {
        self.gradients = self.compute.take_gradients();
        let mut squares = square_norms(self.compute.part(), &self.gradients);
        tie_here(self.compute.part(), &mut self.gradients, &mut squares);
        squares
    }

    /// Adds up over the ranks the gradients of parameters that each has whole but sees used for its own share alone. Their
    /// `sum g^2` then, in order.
    pub(super) fn sum_partial(&mut self) -> Result<Vec<f64>, CollectiveError> {
        let partial = self.parameters().filter(|(_, parameter)| parameter.partial);
        let partial: Vec<usize> = partial.map(|(index, _)| index).collect();
        let mut squares = Vec::with_capacity(partial.len());
        for index in partial {
            let sum = match (&self.gradients[index], self.group()) {
                (Some(gradient), Some(group)) => Some(self.upload(group.sum_exactly(&values(gradient)))),
                (gradient, _) => gradient.clone(),
            };
            squares.push(sum.as_ref().map_or(0.0, square_norm));
            self.gradients[index] = sum;
        }
        self.check(squares)
    }

    /// Its gradient of the parameter at `index`; `None` when the step is lost.
    pub(super) fn gradient(&self, index: usize) -> Option<Piece> {
        let slice = self.compute.part().params().iter().nth(index)?.slice.clone();
        self.gradients[index].as_ref().map(|gradient| (slice, values(gradient)))
    }

    /// Takes its piece of a whole gradient.
    pub(super) fn take_piece(&mut self, Whole { at, values }: &Whole) {
        let params = self.compute.part().params();
        let slice = &params.iter().nth(*at).expect("the position is the set's own").slice;
        self.gradients[*at] = Some(params.upload(slice.take(values.to_vec())));
    }

    /// The checksum of what it has of a tied matrix whose other end is on another stage.
    pub(super) fn checksum(&self) -> Option<Hasher> {
        checksum(self.compute.part())
    }

    pub(super) fn give_gradients(&mut self) -> Gradients {
        std::mem::take(&mut self.gradients)
    }

    pub(super) fn set_gradients(&mut self, gradients: Gradients) {
        self.gradients = gradients;
    }

    /// Updates its share with its gradients.
    pub(super) fn update(&mut self, rate: f64, clip: f64) {
        let gradients = self.give_gradients();
        self.optimizer.step(self.compute.part_mut().params_mut(), gradients, rate, clip);
    }

    pub(super) fn state(&self) -> (&Part, &AdamW) {
        (self.compute.part(), &self.optimizer)
    }

    pub(super) fn state_mut(&mut self) -> (&mut Part, &mut AdamW) {
        (self.compute.part_mut(), &mut self.optimizer)
    }

    /// Goes on at its end of a new group.
    pub(super) fn rejoin(&self, end: Group) {
        if let Some(group) = self.group() {
            group.rejoin(end);
        }
    }

    /// What it has sent to the others, by site.
    pub(super) fn statistics(&self) -> Vec<SiteStatistics> {
        self.group().map_or_else(Vec::new, |group| group.statistics())
    }

    /// Its end of the group; `None` for one that is alone.
    pub(super) fn group(&self) -> Option<&Arc<TensorGroup>> {
        self.compute.part().group()
    }

    /// The parameters that are trained, with their positions.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        let params = self.compute.part().params();
        params.trainable(&(0..params.len()))
    }

    fn upload(&self, values: Vec<f32>) -> Tensor<1> {
        self.compute.part().params().upload(values)
    }

    /// What came out of a pass, if the ranks have met in it.
    fn check<T>(&self, result: T) -> Result<T, CollectiveError> {
        self.group().map_or(Ok(()), |group| group.check()).map(|()| result)
    }
}

pub(super) fn values(tensor: &Tensor<1>) -> Vec<f32> {
    tensor.clone().into_data().try_into_vec::<f32>().expect("gradients are f32")
}
