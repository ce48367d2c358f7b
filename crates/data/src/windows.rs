//! A text cut into windows, and the windows gathered into micro-batches.

use super::MicroBatch;

/// Consecutive windows of `sequence` predictions that overlap in one token, so that each token but the first
/// is predicted once; the last one, the tail, may be shorter. Micro-batches hold up to `samples` full
/// windows, or the tail alone, since a micro-batch has one length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows<'a> {
    pub(super) tokens: &'a [u32],
    pub(super) sequence: usize,
    pub(super) samples: usize,
}

impl Windows<'_> {
    /// Windows that are not the tail.
    pub(super) fn full(self) -> usize {
        self.predictions() / self.sequence
    }

    /// Micro-batches that hold every window once.
    pub(super) fn micro_batches(self) -> usize {
        let tail = usize::from(!self.predictions().is_multiple_of(self.sequence));
        self.full().div_ceil(self.samples) + tail
    }

    /// Micro-batch `index` when the full windows are taken in the given `order`; the tail comes last.
    pub(super) fn micro_batch(self, index: usize, order: impl Fn(usize) -> usize) -> MicroBatch {
        let first = index * self.samples;
        if first >= self.full() {
            return self.gather(&[self.full()], self.predictions() % self.sequence);
        }
        let last = self.full().min(first + self.samples);
        self.gather(&(first..last).map(order).collect::<Vec<_>>(), self.sequence)
    }

    fn predictions(self) -> usize {
        self.tokens.len() - 1
    }

    fn gather(self, windows: &[usize], len: usize) -> MicroBatch {
        let rows = |shift: usize| {
            let starts = windows.iter().map(|window| window * self.sequence + shift);
            starts.flat_map(|start| &self.tokens[start..start + len]).copied().collect()
        };
        MicroBatch::new(windows.len(), len, rows(0), rows(1), None)
    }
}
