//! Sums over the rows of a matrix: in order inside pieces of [`ROWS`] rows, then piece by piece.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::rows;

/// Rows whose sum one task computes.
pub(crate) const ROWS: usize = 32;

/// The sum of each column of a row-major matrix.
pub(crate) fn sums(values: &[f32], width: usize) -> Vec<f32> {
    let pieces = values.par_chunks(ROWS * width).map(|rows| {
        let mut sum = vec![0.0; width];
        Arch::new().dispatch(AddRows { sum: &mut sum, rows });
        sum
    });
    total(pieces.collect(), width)
}

/// The pieces' sums in order.
pub(crate) fn total(pieces: Vec<Vec<f32>>, width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width];
    for piece in pieces {
        Arch::new().dispatch(AddRows { sum: &mut sum, rows: &piece });
    }
    sum
}

/// Adds the rows, each as long as `sum`, to it.
pub(crate) struct AddRows<'a> {
    pub(crate) sum: &'a mut [f32],
    pub(crate) rows: &'a [f32],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.rows.chunks(self.sum.len()) {
            rows::add(simd, self.sum, row);
        }
    }
}
