//! Causal attention in tiles (Dao et al., 2022): no score outlives its tile, and the backward pass computes them again from
//! one number a row and head, the logarithm of the sum of its exponentials.

mod backward;
mod forward;

pub(crate) use backward::{Saved, backward};
pub(crate) use forward::forward;

use std::ops::Range;

use super::product::Matrix;
use crate::AttentionShape;

/// Queries of a tile.
const QUERIES: usize = 32;

/// Keys of a tile: 32 KiB of scores.
const KEYS: usize = 256;

/// Rows of one value per channel; the channels of a head lie side by side.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) stride: usize,
}

impl<'a> Rows<'a> {
    /// `rows`, the channels of head `head`.
    fn head(self, rows: Range<usize>, head: usize, dim: usize) -> Matrix<'a> {
        let start = rows.start * self.stride + head * dim;
        Matrix::new(&self.values[start..], [rows.len(), dim], self.stride)
    }

    /// One row's channels of head `head`.
    fn row(self, row: usize, head: usize, dim: usize) -> &'a [f32] {
        let start = row * self.stride + head * dim;
        &self.values[start..start + dim]
    }
}

/// Queries, keys and values.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) shape: AttentionShape,
    pub(crate) q: Rows<'a>,
    pub(crate) k: Rows<'a>,
    pub(crate) v: Rows<'a>,
}

impl AttentionShape {
    /// Keys that the query at `position` of its block sees: those up to its own.
    fn visible(&self, position: usize) -> usize {
        self.keys - self.queries + position + 1
    }

    /// Query heads that share a key and value head.
    fn shared(&self) -> usize {
        self.query_heads / self.kv_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// The key tiles that `visible` keys make.
fn key_tiles(visible: usize) -> impl Iterator<Item = Range<usize>> {
    (0..visible).step_by(KEYS).map(move |start| start..visible.min(start + KEYS))
}
