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
    reason: Option<String>,
    loss_sum: f64,
    loss_tokens: usize,
}

impl<'a> Pass<'a> {
    pub(super) fn new(step: u64, batches: &'a [MicroBatch]) -> Self {
        let tokens: usize = batches.iter().map(|batch| batch.targets.len()).sum();
        Self {
            step,
            batches,
            weight: 1.0 / tokens as f32,
            lost: BTreeSet::new(),
            reason: None,
            loss_sum: 0.0,
            loss_tokens: 0,
        }
    }

    /// Tokens predicted in the step.
    pub(super) fn tokens(&self) -> usize {
        self.batches.iter().map(|batch| batch.targets.len()).sum()
    }

    /// Marks a micro-batch, and with it the step, as lost. The first reason stays.
    pub(super) fn lose(&mut self, index: u32, reason: impl FnOnce() -> String) {
        self.lost.insert(index);
        self.lose_step(reason);
    }

    /// Marks the step as lost.
    pub(super) fn lose_step(&mut self, reason: impl FnOnce() -> String) {
        self.reason.get_or_insert_with(reason);
    }

    pub(super) fn is_lost(&self, index: u32) -> bool {
        self.lost.contains(&index)
    }

    pub(super) fn reason(&self) -> Option<String> {
        self.reason.clone()
    }

    pub(super) fn add_loss(&mut self, sum: f64, batch: &MicroBatch) {
        self.loss_sum += sum;
        self.loss_tokens += batch.targets.len();
    }

    /// Mean loss of the tokens whose micro-batch is not lost; NaN when all are.
    pub(super) fn loss(&self) -> f64 {
        self.loss_sum / self.loss_tokens as f64
    }
}
