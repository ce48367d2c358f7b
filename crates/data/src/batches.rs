//! The micro-batches of each training step, and of an evaluation.

use std::iter;

use super::entry::{id, is_trained};
use super::rows::Row;
use super::shuffle::permutation;
use super::windows::{WindowSize, Windows};
use super::{Corpus, DataError, Dataset, MicroBatch, Packing};

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
/// An epoch goes through every sequence of the data once, in an order drawn for (seed, epoch): micro-batches of
/// `micro_batch` sequences, the last with what is left, then the tail of a packed stream on its own, as it is shorter.
/// Steps take `micro_batches` of these in turn; the last step of an epoch may have fewer.
#[derive(Debug)]
pub struct Batches {
    dataset: Dataset,
    size: BatchSize,
    seed: u64,
    /// Kept from the last call: a whole epoch shares it.
    order: Order,
}

/// The order of the sequences in an epoch, the tail apart.
#[derive(Debug)]
struct Order {
    epoch: u64,
    rows: Vec<u32>,
}

impl Batches {
    /// `dataset` in the pieces of `size`, in the order that `seed` gives.
    pub fn new(dataset: Dataset, size: BatchSize, seed: u64) -> Self {
        let order = Order { epoch: 0, rows: permutation(dataset.rows.len(), seed, 0) };
        Self { dataset, size, seed, order }
    }

    /// Where the data comes from.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Steps in which every token that is trained on is predicted once.
    pub fn steps_per_epoch(&self) -> u64 {
        self.micro_batches().div_ceil(self.size.micro_batches) as u64
    }

    /// The micro-batches of `step`, counted from 0 and going through as many epochs as it takes. The steps
    /// may be asked for in any order.
    ///
    /// # Errors
    /// Tokenized data on disk that cannot be read any more.
    pub fn step(&mut self, step: u64) -> Result<Vec<MicroBatch>, DataError> {
        let epoch = step / self.steps_per_epoch();
        let first = (step % self.steps_per_epoch()) as usize * self.size.micro_batches;
        let last = self.micro_batches().min(first + self.size.micro_batches);
        if self.order.epoch != epoch {
            self.order = Order { epoch, rows: permutation(self.dataset.rows.len(), self.seed, epoch) };
        }
        (first..last).map(|index| self.dataset.micro_batch(&self.rows(index))).collect()
    }

    fn micro_batches(&self) -> usize {
        let rows = &self.dataset.rows;
        rows.len().div_ceil(self.size.micro_batch) + usize::from(rows.tail.is_some())
    }

    /// The sequences of an epoch's micro-batch, each with its place in the data.
    fn rows(&self, index: usize) -> Vec<(usize, Row)> {
        let rows = &self.dataset.rows;
        let first = index * self.size.micro_batch;
        let last = rows.len().min(first + self.size.micro_batch);
        match self.order.rows.get(first..last) {
            Some(order) if !order.is_empty() => {
                order.iter().map(|&at| (at as usize, rows.get(at as usize))).collect()
            }
            _ => rows.tail.into_iter().map(|tail| (rows.len(), tail)).collect(),
        }
    }
}

impl Dataset {
    /// The micro-batches that evaluate a model on the first `limit` predictions (0 = all): the sequences in order,
    /// `micro_batch` at a time. The last one is cut at the limit, unless that could leave it nothing that counts.
    pub fn evaluation(
        &self,
        limit: usize,
        micro_batch: usize,
    ) -> impl Iterator<Item = Result<MicroBatch, DataError>> + '_ {
        let mut rows = self.evaluated(limit).enumerate().peekable();
        iter::from_fn(move || {
            let mut group = vec![rows.next()?];
            // A packed stream is not padded: its last sequence, if it is shorter, goes alone.
            let fits = |row: &Row, first: Row| self.packing == Packing::Pad || row.targets == first.targets;
            while group.len() < micro_batch {
                match rows.next_if(|(_, row)| fits(row, group[0].1)) {
                    Some(row) => group.push(row),
                    None => break,
                }
            }
            Some(self.micro_batch(&group))
        })
    }

    /// Samples of [`Dataset::evaluation`].
    pub fn evaluation_samples(&self, limit: usize) -> usize {
        self.evaluated(limit).count()
    }

    /// The sequences of an evaluation.
    fn evaluated(&self, limit: usize) -> impl Iterator<Item = Row> + '_ {
        let mut left = if limit == 0 { usize::MAX } else { limit };
        let everything_counts = self.rows.trained + 1 == self.entries.len();
        let all = (0..self.rows.len()).map(|at| self.rows.get(at)).chain(self.rows.tail);
        all.map_while(move |row| {
            let most = if everything_counts { left } else { usize::MAX };
            let cut = Row { targets: row.targets.min(most), ..row };
            let wanted = left > 0;
            left = left.saturating_sub(cut.targets);
            wanted.then_some(cut)
        })
    }

    /// The sequences, those that are shorter than the longest padded at their ends. What an input is that no counted
    /// target follows does not matter: attention looks back only.
    fn micro_batch(&self, rows: &[(usize, Row)]) -> Result<MicroBatch, DataError> {
        let tokens = rows.iter().map(|(_, row)| row.targets).max().unwrap_or(0);
        let ids = rows.iter().map(|(at, _)| *at as u64).collect();
        let (mut inputs, mut targets, mut mask) = (Vec::new(), Vec::new(), Vec::new());
        for (_, row) in rows {
            let entries = self.entries.read(row.start, row.targets + 1)?;
            let padding = tokens - row.targets;
            inputs.extend(entries[..row.targets].iter().map(|&entry| id(entry)));
            targets.extend(entries[1..].iter().map(|&entry| id(entry)));
            mask.extend(entries[1..].iter().map(|&entry| is_trained(entry)));
            inputs.extend(iter::repeat_n(0, padding));
            targets.extend(iter::repeat_n(0, padding));
            mask.extend(iter::repeat_n(false, padding));
        }
        Ok(MicroBatch::new(rows.len(), tokens, inputs, targets, Some(mask), ids))
    }
}

/// The micro-batches that evaluate a model on the first `limit` predictions of `corpus` (0 = all), in windows of `size`:
/// each of these predictions counts once, in the first window that has it.
///
/// # Panics
/// When a size is 0, or the stride larger than the sequence.
pub fn evaluation(
    corpus: &Corpus,
    size: WindowSize,
    limit: usize,
) -> impl ExactSizeIterator<Item = MicroBatch> {
    assert!(size.stride <= size.sequence, "nothing may lie between two windows");
    let all = corpus.tokens();
    let end = if limit == 0 { all.len() } else { all.len().min(limit.saturating_add(1)) };
    let windows = Windows { tokens: &all[..end], size };
    (0..windows.micro_batches()).map(move |index| windows.micro_batch(index))
}

#[cfg(test)]
mod tests;
