//! One step in the making.

use std::collections::BTreeSet;

use crate::data::MicroBatch;

/// What a stage knows of the step it is in.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) step: u64,
    pub(super) batches: &'a [MicroBatch],
    /// What one token's loss counts in the mean.
    pub(super) weight: f32,
    lost: BTreeSet<u32>,
    lost_elsewhere: Option<String>,
    cause: Option<String>,
    loss_sum: f64,
    loss_tokens: usize,
}

impl<'a> Pass<'a> {
    pub(super) fn new(step: u64, batches: &'a [MicroBatch]) -> Self {
        let tokens: usize = batches.iter().map(MicroBatch::trained).sum();
        Self {
            step,
            batches,
            weight: 1.0 / tokens as f32,
            lost: BTreeSet::new(),
            lost_elsewhere: None,
            cause: None,
            loss_sum: 0.0,
            loss_tokens: 0,
        }
    }

    /// Targets that count in the step.
    pub(super) fn tokens(&self) -> usize {
        self.batches.iter().map(MicroBatch::trained).sum()
    }

    /// Marks a micro-batch, and with it the step, as lost on another stage, as the neighbour `peer` says.
    pub(super) fn lose(&mut self, index: u32, peer: usize) {
        self.lost.insert(index);
        self.lost_elsewhere.get_or_insert_with(|| format!("stage {peer} lost micro-batch {index}"));
    }

    /// Marks a micro-batch, and with it the step, as lost here.
    pub(super) fn lose_because(&mut self, index: u32, cause: String) {
        self.lost.insert(index);
        self.lose_step(cause);
    }

    /// Marks the step as lost here. The first cause stays.
    pub(super) fn lose_step(&mut self, cause: String) {
        self.cause.get_or_insert(cause);
    }

    pub(super) fn is_lost(&self, index: u32) -> bool {
        self.lost.contains(&index)
    }

    /// What made this stage lose the step.
    pub(super) fn cause(&self) -> Option<String> {
        self.cause.clone()
    }

    /// What is known of a loss on another stage.
    pub(super) fn lost_elsewhere(&self) -> Option<String> {
        self.lost_elsewhere.clone()
    }

    pub(super) fn add_loss(&mut self, sum: f64, batch: &MicroBatch) {
        self.loss_sum += sum;
        self.loss_tokens += batch.trained();
    }

    /// Mean loss of the targets that count and whose micro-batch is not lost; NaN when all are.
    pub(super) fn loss(&self) -> f64 {
        self.loss_sum / self.loss_tokens as f64
    }
}
