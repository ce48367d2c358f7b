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
        let [max, sum] = Arch::new().dispatch(MaxAndSum(row));
        let log_sum = max + sum.ln();
        RowLoss { loss: log_sum - row[target as usize], log_sum }
    })
    .collect()
}

/// Numbers in which a rank's columns tell what they add to a row's loss.
const SHARE: usize = 3;

/// Of each row of `width` logits, which are some of a longer row's: the largest one, `m`, `sum_j e^(x_j - m)`, and the target's
/// logit, 0 if it is not among them.
pub(crate) fn shares(logits: &[f32], width: usize, targets: &[u32]) -> Vec<f32> {
    let rows = logits.par_chunks(width).zip(targets);
    let shares = rows.map(|(row, &target)| {
        let [max, sum] = Arch::new().dispatch(MaxAndSum(row));
        [max, sum, row.get(target as usize).copied().unwrap_or_default()]
    });
    shares.collect::<Vec<[f32; SHARE]>>().into_flattened()
}

/// The losses of `rows` rows from the [`shares`] of all ranks, one rank's behind the other's.
pub(crate) fn join(shares: &[f32], rows: usize) -> Vec<RowLoss> {
    let (shares, rest) = shares.as_chunks::<SHARE>();
    assert!(rest.is_empty() && shares.len().is_multiple_of(rows), "cross_entropy: shares of {rows} rows");
    let row = |row: usize| {
        let of_row = || shares.iter().skip(row).step_by(rows);
        let max = of_row().fold(f32::NEG_INFINITY, |max, &[other, ..]| max.max(other));
        let sum: f32 = of_row().map(|&[other, sum, _]| sum * (other - max).exp()).sum();
        let target: f32 = of_row().map(|&[.., target]| target).sum();
        let log_sum = max + sum.ln();
        RowLoss { loss: log_sum - target, log_sum }
    };
    (0..rows).map(row).collect()
}

/// `g_i (softmax(x_i) - onehot(target_i))` in place of each row `x_i`. A target that is none of its logits is another rank's.
pub(crate) fn backward(logits: &mut [f32], width: usize, targets: &[u32], losses: &[RowLoss], g: &[f32]) {
    let rows = logits.par_chunks_mut(width).zip(targets).zip(losses.par_iter().zip(g));
    rows.for_each(|((row, &target), (loss, &g))| {
        // A row that does not count passes nothing on, whatever its logits.
        if g == 0.0 {
            return row.fill(0.0);
        }
        Arch::new().dispatch(Softmax { row, log_sum: loss.log_sum, factor: g });
        if let Some(target) = row.get_mut(target as usize) {
            *target -= g;
        }
    });
}

/// The largest value `m`, and `sum_j e^(x_j - m)`.
struct MaxAndSum<'a>(&'a [f32]);

impl WithSimd for MaxAndSum<'_> {
    type Output = [f32; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f32; 2] {
        let max = rows::max(simd, self.0);
        [max, rows::sum_exp(simd, self.0, max)]
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
