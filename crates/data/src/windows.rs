//! A text cut into windows, and the windows gathered into micro-batches.

use super::MicroBatch;

/// How a text is cut into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    /// Predictions in a window.
    pub sequence: usize,
    /// Tokens from the start of a window to that of the next: `sequence`, or fewer for windows that overlap.
    pub stride: usize,
    /// Windows of a micro-batch.
    pub micro_batch: usize,
}

impl WindowSize {
    /// Windows that do not overlap.
    pub fn consecutive(sequence: usize, micro_batch: usize) -> Self {
        Self { sequence, stride: sequence, micro_batch }
    }
}

/// Windows of `sequence` predictions, the last one, the tail, perhaps shorter. In each only the predictions count that
/// no window before has made, so each token but the first counts once. Micro-batches hold up to `micro_batch` full
/// windows, or the tail alone, since a micro-batch has one length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows<'a> {
    pub(super) tokens: &'a [u32],
    pub(super) size: WindowSize,
}

impl Windows<'_> {
    /// Windows that are not the tail.
    fn full(self) -> usize {
        let WindowSize { sequence, stride, .. } = self.size;
        self.predictions().checked_sub(sequence).map_or(0, |rest| rest / stride + 1)
    }

    /// Whether the full windows leave predictions over.
    fn has_tail(self) -> bool {
        let WindowSize { sequence, stride, .. } = self.size;
        self.full() == 0 || (self.full() - 1) * stride + sequence < self.predictions()
    }

    /// Micro-batches that hold every window once.
    pub(super) fn micro_batches(self) -> usize {
        self.full().div_ceil(self.size.micro_batch) + usize::from(self.has_tail())
    }

    /// Micro-batch `index`, of consecutive windows; the tail comes last.
    pub(super) fn micro_batch(self, index: usize) -> MicroBatch {
        let first = index * self.size.micro_batch;
        if first >= self.full() {
            let start = self.full() * self.size.stride;
            return self.gather(self.full()..self.full() + 1, self.predictions() - start);
        }
        let last = self.full().min(first + self.size.micro_batch);
        self.gather(first..last, self.size.sequence)
    }

    fn predictions(self) -> usize {
        self.tokens.len() - 1
    }

    /// Windows of `len` predictions each.
    fn gather(self, windows: std::ops::Range<usize>, len: usize) -> MicroBatch {
        let WindowSize { sequence, stride, .. } = self.size;
        let rows = |shift: usize| {
            let starts = windows.clone().map(|window| window * stride + shift);
            starts.flat_map(|start| &self.tokens[start..start + len]).copied().collect()
        };
        let mask = windows.clone().flat_map(|window| {
            let made = if window == 0 { 0 } else { sequence - stride };
            (0..len).map(move |at| at >= made)
        });
        let ids = windows.clone().map(|window| window as u64).collect();
        MicroBatch::new(windows.len(), len, rows(0), rows(1), Some(mask.collect()), ids)
    }
}
