//! The micro-batches of each training step, and of an evaluation.

use std::convert::identity;

use super::shuffle::permutation;
use super::windows::Windows;
use super::{Corpus, MicroBatch};

/// How much a micro-batch and a step hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    /// Tokens of a sequence.
    pub sequence: usize,
    /// Sequences of a micro-batch.
    pub micro_batch: usize,
    /// Micro-batches of a step.
    pub micro_batches: usize,
}

/// The training data, step by step.
///
/// An epoch goes through every window of the text once, in an order drawn for (seed, epoch): micro-batches of
/// `micro_batch` full windows, the last with what is left, then the tail window on its own, as a micro-batch
/// has one length. Steps take `micro_batches` of these in turn; the last step of an epoch may have fewer.
#[derive(Debug)]
pub struct Batches {
    corpus: Corpus,
    size: BatchSize,
    seed: u64,
    /// Kept from the last call: a whole epoch shares it.
    order: Order,
}

/// The order of the full windows in an epoch.
#[derive(Debug)]
struct Order {
    epoch: u64,
    windows: Vec<usize>,
}

impl Batches {
    /// `corpus` in the pieces of `size`, in the order that `seed` gives.
    pub fn new(corpus: Corpus, size: BatchSize, seed: u64) -> Self {
        let order = Order { epoch: 0, windows: Vec::new() };
        let mut batches = Self { corpus, size, seed, order };
        batches.shuffle(0);
        batches
    }

    /// Steps in which every token is predicted once.
    pub fn steps_per_epoch(&self) -> u64 {
        self.windows().micro_batches().div_ceil(self.size.micro_batches) as u64
    }

    /// The micro-batches of `step`, counted from 0 and going through as many epochs as it takes. The steps
    /// may be asked for in any order.
    pub fn step(&mut self, step: u64) -> Vec<MicroBatch> {
        let epoch = step / self.steps_per_epoch();
        let first = (step % self.steps_per_epoch()) as usize * self.size.micro_batches;
        let last = self.windows().micro_batches().min(first + self.size.micro_batches);
        if self.order.epoch != epoch {
            self.shuffle(epoch);
        }
        let order = |place: usize| self.order.windows[place];
        (first..last).map(|index| self.windows().micro_batch(index, order)).collect()
    }

    fn shuffle(&mut self, epoch: u64) {
        self.order = Order { epoch, windows: permutation(self.windows().full(), self.seed, epoch) };
    }

    fn windows(&self) -> Windows<'_> {
        Windows { tokens: self.corpus.tokens(), sequence: self.size.sequence, samples: self.size.micro_batch }
    }
}

/// The micro-batches that evaluate a model on the first `limit` predictions of `corpus` (0 = all):
/// consecutive windows of `sequence` tokens, `micro_batch` at a time, each token predicted once.
pub fn evaluation(
    corpus: &Corpus,
    sequence: usize,
    limit: usize,
    micro_batch: usize,
) -> impl ExactSizeIterator<Item = MicroBatch> {
    let all = corpus.tokens();
    let end = if limit == 0 { all.len() } else { all.len().min(limit.saturating_add(1)) };
    let windows = Windows { tokens: &all[..end], sequence, samples: micro_batch };
    (0..windows.micro_batches()).map(move |index| windows.micro_batch(index, identity))
}

#[cfg(test)]
mod tests;
