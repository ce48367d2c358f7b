use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{Inputs, KEYS, QUERIES, key_tiles};
use crate::kernel::product::{Matrix, MatrixMut, Output, Threads, product};
use crate::kernel::rows;

/// Writes `softmax(Q K^T / sqrt(dim) + causal) V` to `out`, rows like the queries', and returns the logarithm of each
/// softmax's sum, `[rows, query heads]`.
pub(crate) fn forward(inputs: Inputs<'_>, out: &mut [f32]) -> Vec<f32> {
    let shape = inputs.shape;
    let width = shape.query_heads * shape.head_dim;
    let mut log_sums = vec![0.0; shape.samples * shape.queries * shape.query_heads];
    let samples = out.par_chunks_mut(shape.queries * width);
    let samples = samples.zip(log_sums.par_chunks_mut(shape.queries * shape.query_heads)).enumerate();
    samples.for_each(|(sample, (out, log_sums))| {
        let blocks = out.par_chunks_mut(QUERIES * width);
        let blocks = blocks.zip(log_sums.par_chunks_mut(QUERIES * shape.query_heads)).enumerate();
        blocks.for_each(|(block, (out, log_sums))| {
            let rows = log_sums.len() / shape.query_heads;
            let queries = block * QUERIES..block * QUERIES + rows;
            Arch::new().dispatch(Block { inputs, sample, queries, out, log_sums });
        });
    });
    log_sums
}

/// A block of queries of one sample, all its heads.
struct Block<'a> {
    inputs: Inputs<'a>,
    sample: usize,
    queries: Range<usize>,
    out: &'a mut [f32],
    log_sums: &'a mut [f32],
}

/// The running softmax of a row.
#[derive(Clone, Copy)]
struct Running {
    max: f32,
    sum: f32,
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut scores = vec![0.0; QUERIES * KEYS];
        for head in 0..self.inputs.shape.query_heads {
            self.head(simd, head, &mut scores);
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn head<S: Simd>(&mut self, simd: S, head: usize, scores: &mut [f32]) {
        let Inputs { shape, q, k, v } = self.inputs;
        let (dim, kv_head, count) = (shape.head_dim, head / shape.shared(), self.queries.len());
        let width = shape.query_heads * dim;
        let first_key = self.sample * shape.keys;
        let rows = |rows: &Range<usize>, start: usize| start + rows.start..start + rows.end;
        let q = q.head(rows(&self.queries, self.sample * shape.queries), head, dim);
        let mut running = [Running { max: f32::NEG_INFINITY, sum: 0.0 }; QUERIES];

        for keys in key_tiles(shape.visible(self.queries.end - 1)) {
            let tile = [count, keys.len()];
            let k = k.head(rows(&keys, first_key), kv_head, dim);
            let v = v.head(rows(&keys, first_key), kv_head, dim);
            let out_scores = MatrixMut::new(scores, tile, keys.len());
            product(out_scores, Output::Replace, shape.scale(), [q, k.transposed()], Threads::This);
            for (i, (row, running)) in scores.chunks_mut(keys.len()).zip(&mut running[..count]).enumerate() {
                let visible = shape.visible(self.queries.start + i);
                let correction = running.take(simd, row, visible.saturating_sub(keys.start));
                if keys.start > 0 {
                    rows::scale(simd, &mut self.out[i * width + head * dim..][..dim], correction);
                }
            }
            let mode = if keys.start > 0 { Output::Add } else { Output::Replace };
            let out = MatrixMut::new(&mut self.out[head * dim..], [count, dim], width);
            product(out, mode, 1.0, [Matrix::new(scores, tile, keys.len()), v], Threads::This);
        }
        for (i, running) in running[..count].iter().enumerate() {
            rows::scale(simd, &mut self.out[i * width + head * dim..][..dim], 1.0 / running.sum);
            self.log_sums[i * shape.query_heads + head] = running.max + running.sum.ln();
        }
    }
}

impl Running {
    /// Turns a row's scores into exponentials, 0 from `visible` on, and returns what the sums so far are to be multiplied
    /// with.
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, scores: &mut [f32], visible: usize) -> f32 {
        let (seen, future) = scores.split_at_mut(visible.min(scores.len()));
        future.fill(0.0);
        if seen.is_empty() {
            return 1.0;
        }
        let max = self.max.max(rows::max(simd, seen));
        let correction = (self.max - max).exp();
        self.sum = self.sum * correction + rows::exp_in_place(simd, seen, [1.0, max, 1.0]);
        self.max = max;
        correction
    }
}
