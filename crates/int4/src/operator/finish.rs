use rayon::prelude::*;

use crate::hadamard::transform;
use crate::quantize::Quantized;
use crate::rows::{rows_of_task, scratch, vector_bytes};
use crate::simd::{Kernel, Simd};
use crate::{Block, Isa};

/// Turns the gradient with respect to a quantized matrix into that with respect to the matrix it was made from, in place:
/// clamped elements have none, and the transform is undone. Returns the sum of the former times the codes.
pub(super) fn finish(isa: Isa, gradient: &mut [f32], matrix: &Quantized) -> f64 {
    let columns = matrix.shape()[1];
    if gradient.is_empty() {
        return 0.0;
    }
    let rows = rows_of_task(columns);
    let tasks = gradient.par_chunks_mut(rows * columns);
    let tasks = tasks.zip(matrix.codes().bytes.par_chunks(rows * columns.div_ceil(2)));
    let tasks = tasks.zip(matrix.unclamped().bytes.par_chunks(rows * columns.div_ceil(8)));
    let sums = tasks.map_init(
        || scratch(columns),
        |scratch, ((gradient, codes), unclamped)| {
            isa.run(FinishRows { gradient, columns, codes, unclamped, block: matrix.block(), scratch })
        },
    );
    sums.collect::<Vec<f64>>().iter().sum()
}

struct FinishRows<'a> {
    gradient: &'a mut [f32],
    columns: usize,
    codes: &'a [u8],
    unclamped: &'a [u8],
    block: Block,
    scratch: &'a mut [f32],
}

impl Kernel for FinishRows<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let codes = self.codes.chunks_exact(self.columns.div_ceil(2));
        let unclamped = self.unclamped.chunks_exact(self.columns.div_ceil(8));
        let mut total = 0.0;
        for ((row, codes), unclamped) in
            self.gradient.chunks_exact_mut(self.columns).zip(codes).zip(unclamped)
        {
            self.scratch[..self.columns].copy_from_slice(row);
            self.scratch[self.columns..].fill(0.0);
            total += f64::from(mask(simd, self.scratch, codes, unclamped));
            transform(simd, self.scratch, self.block);
            row.copy_from_slice(&self.scratch[..self.columns]);
        }
        total
    }
}

/// Zeros what is clamped, and returns the sum of `row` times the codes before that.
#[inline(always)]
fn mask<S: Simd>(simd: S, row: &mut [f32], codes: &[u8], unclamped: &[u8]) -> f32 {
    let mut sum = simd.splat(0.0);
    for (i, values) in row.as_chunks_mut().0.iter_mut().enumerate() {
        let v = simd.load(values);
        sum = simd.add(sum, simd.mul(v, simd.unpack(vector_bytes(codes, i))));
        let unclamped = u16::from_le_bytes(vector_bytes(unclamped, i));
        simd.store(simd.keep(v, unclamped), values);
    }
    simd.sum(sum)
}
