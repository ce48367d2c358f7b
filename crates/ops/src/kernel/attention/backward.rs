use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{Inputs, KEYS, QUERIES, Rows, key_tiles};
use crate::AttentionShape;
use crate::kernel::product::{Matrix, MatrixMut, Output, Threads, product};
use crate::kernel::rows;

/// What the forward pass left, and the gradient of its result.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a> {
    /// The result, rows like the queries'.
    pub(crate) out: Rows<'a>,
    /// The logarithm of each softmax's sum, `[rows, query heads]`.
    pub(crate) log_sums: &'a [f32],
    /// The upstream gradient, like `out`.
    pub(crate) g: Rows<'a>,
}

/// The gradients of queries, keys and values, each contiguous.
///
/// Every (sample, query head) is computed on its own; the query heads of a key head are then added in order.
pub(crate) fn backward(inputs: Inputs<'_>, saved: Saved<'_>) -> [Vec<f32>; 3] {
    let shape = inputs.shape;
    let (query_part, key_part) = (shape.queries * shape.head_dim, shape.keys * shape.head_dim);
    let part = query_part + 2 * key_part;
    let mut parts = vec![0.0; shape.samples * shape.query_heads * part];
    parts.par_chunks_mut(part).enumerate().for_each(|(index, part)| {
        let (dq, rest) = part.split_at_mut(query_part);
        let (dk, dv) = rest.split_at_mut(key_part);
        let (sample, head) = (index / shape.query_heads, index % shape.query_heads);
        Arch::new().dispatch(HeadGradients { inputs, saved, sample, head, dq, dk, dv });
    });
    let gather = |start, rows, heads| gather(&parts, &shape, Gather { part, start, rows, heads });
    [
        gather(0, shape.queries, shape.query_heads),
        gather(query_part, shape.keys, shape.kv_heads),
        gather(query_part + key_part, shape.keys, shape.kv_heads),
    ]
}

/// Where one gradient lies in the parts of all heads.
#[derive(Clone, Copy)]
struct Gather {
    /// Values of a part.
    part: usize,
    /// Where the gradient starts in it.
    start: usize,
    /// Rows of a sample.
    rows: usize,
    /// Heads of the gradient; the query heads are divided among them.
    heads: usize,
}

fn gather(parts: &[f32], shape: &AttentionShape, from: Gather) -> Vec<f32> {
    let dim = shape.head_dim;
    let (width, shared) = (from.heads * dim, shape.query_heads / from.heads);
    let mut out = vec![0.0; shape.samples * from.rows * width];
    out.par_chunks_mut(width).enumerate().for_each(|(row, out)| {
        let (sample, row) = (row / from.rows, row % from.rows);
        for (head, out) in out.chunks_mut(dim).enumerate() {
            let first = sample * shape.query_heads + head * shared;
            for query_head in first..first + shared {
                let part = &parts[query_head * from.part + from.start + row * dim..][..dim];
                out.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
        }
    });
    out
}

/// The gradients that one query head of one sample contributes, each `[rows, dim]`, zero at first.
struct HeadGradients<'a> {
    inputs: Inputs<'a>,
    saved: Saved<'a>,
    sample: usize,
    head: usize,
    dq: &'a mut [f32],
    dk: &'a mut [f32],
    dv: &'a mut [f32],
}

/// Buffers of one tile.
struct Tile {
    weights: Vec<f32>,
    gradients: Vec<f32>,
}

impl WithSimd for HeadGradients<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let shape = self.inputs.shape;
        let buffer = vec![0.0; QUERIES * KEYS];
        let mut tile = Tile { weights: buffer.clone(), gradients: buffer };
        for start in (0..shape.queries).step_by(QUERIES) {
            let queries = start..shape.queries.min(start + QUERIES);
            for keys in key_tiles(shape.visible(queries.end - 1)) {
                self.tile(simd, &queries, &keys, &mut tile);
            }
        }
    }
}

impl HeadGradients<'_> {
    /// With `P` the softmax's weights: `dV += P^T dO`, `dS = P (dO V^T - rowsum(dO O)) / sqrt(dim)`, `dQ += dS K`,
    /// `dK += dS^T Q` (Dao et al., 2022, algorithm 4).
    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, queries: &Range<usize>, keys: &Range<usize>, tile: &mut Tile) {
        let shape = self.inputs.shape;
        let (dim, kv_head) = (shape.head_dim, self.head / shape.shared());
        let of = |rows: &Range<usize>, start: usize| start + rows.start..start + rows.end;
        let (query_rows, key_rows) =
            (of(queries, self.sample * shape.queries), of(keys, self.sample * shape.keys));
        let q = self.inputs.q.head(query_rows.clone(), self.head, dim);
        let g = self.saved.g.head(query_rows.clone(), self.head, dim);
        let k = self.inputs.k.head(key_rows.clone(), kv_head, dim);
        let v = self.inputs.v.head(key_rows, kv_head, dim);
        let (size, stride) = ([queries.len(), keys.len()], keys.len());
        let multiply =
            |out: &mut [f32], mode, factor, operands: [Matrix<'_>; 2], [rows, columns]: [usize; 2]| {
                product(MatrixMut::new(out, [rows, columns], columns), mode, factor, operands, Threads::This);
            };

        multiply(&mut tile.weights, Output::Replace, shape.scale(), [q, k.transposed()], size);
        multiply(&mut tile.gradients, Output::Replace, 1.0, [g, v.transposed()], size);
        for (i, row) in query_rows.enumerate() {
            let visible = shape.visible(queries.start + i).saturating_sub(keys.start);
            let (out, g) = (self.saved.out.row(row, self.head, dim), self.saved.g.row(row, self.head, dim));
            let row_sums =
                [self.saved.log_sums[row * shape.query_heads + self.head], rows::dot(simd, out, g)];
            let part = i * stride..(i + 1) * stride;
            let (weights, gradients) = (&mut tile.weights[part.clone()], &mut tile.gradients[part]);
            score_gradients(simd, [weights, gradients], visible, row_sums);
        }
        let weights = Matrix::new(&tile.weights, size, stride);
        let gradients = Matrix::new(&tile.gradients, size, stride);
        let (query_part, key_part) = (queries.start * dim, keys.start * dim);
        multiply(&mut self.dv[key_part..], Output::Add, 1.0, [weights.transposed(), g], [stride, dim]);
        multiply(&mut self.dq[query_part..], Output::Add, shape.scale(), [gradients, k], [size[0], dim]);
        multiply(
            &mut self.dk[key_part..],
            Output::Add,
            shape.scale(),
            [gradients.transposed(), q],
            [stride, dim],
        );
    }
}

/// A row's scores become weights, and the weights' gradients those of the scores; both 0 from `visible` on.
#[inline(always)]
fn score_gradients<S: Simd>(
    simd: S,
    [weights, gradients]: [&mut [f32]; 2],
    visible: usize,
    [log_sum, mean]: [f32; 2],
) {
    let visible = visible.min(weights.len());
    weights[visible..].fill(0.0);
    gradients[visible..].fill(0.0);
    rows::exp_in_place(simd, &mut weights[..visible], [1.0, log_sum, 1.0]);
    rows::weigh(simd, &mut gradients[..visible], &weights[..visible], mean);
}
