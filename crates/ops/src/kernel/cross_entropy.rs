//! Softmax cross-entropy of each row. The backward pass turns the logits into their gradient in place.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::rows;

/// A row's loss, in nats, and the logarithm of its exponentials' sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowLoss {
    pub(crate) loss: f32,
    log_sum: f32,
}

/// `log(sum_j e^x_j) - x_target` of each row of `width` logits.
pub(crate) fn forward(logits: &[f32], width: usize, targets: &[u32]) -> Vec<RowLoss> {
    let rows = logits.par_chunks(width).zip(targets);
    rows.map(|(row, &target)| {
        let log_sum = Arch::new().dispatch(LogSum(row));
        RowLoss { loss: log_sum - row[target as usize], log_sum }
    })
    .collect()
}

/// `g_i (softmax(x_i) - onehot(target_i))` in place of each row `x_i`.
pub(crate) fn backward(logits: &mut [f32], width: usize, targets: &[u32], losses: &[RowLoss], g: &[f32]) {
    let rows = logits.par_chunks_mut(width).zip(targets).zip(losses.par_iter().zip(g));
    rows.for_each(|((row, &target), (loss, &g))| {
        // A row that does not count passes nothing on, whatever its logits.
        if g == 0.0 {
            return row.fill(0.0);
        }
        Arch::new().dispatch(Softmax { row, log_sum: loss.log_sum, factor: g });
        row[target as usize] -= g;
    });
}

struct LogSum<'a>(&'a [f32]);

impl WithSimd for LogSum<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let max = rows::max(simd, self.0);
        max + rows::sum_exp(simd, self.0, max).ln()
    }
}

struct Softmax<'a> {
    row: &'a mut [f32],
    log_sum: f32,
    factor: f32,
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        rows::exp_in_place(simd, self.row, [1.0, self.log_sum, self.factor]);
    }
}
