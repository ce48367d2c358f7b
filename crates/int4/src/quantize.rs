#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::hadamard::transform;
use crate::lsq::LARGEST;
use crate::matrix::{check_len, elements};
use crate::rows::{rows_of_task, scratch, write_vector};
use crate::simd::{Kernel, Simd};
use crate::{BitMatrix, Block, Int4Error, Int4Matrix, Isa, Step};

/// A matrix in 4 bits: `step * codes`, times the inverse transform, is about the matrix it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    codes: Int4Matrix,
    unclamped: BitMatrix,
    step: Step,
    block: Block,
    finite: bool,
}

impl Quantized {
    /// `round(clamp(v / step, -7, 7))`, half to even, `v` being `x` `[rows, columns]` after the Hadamard transform in blocks of `block`
    /// (paper, section 3.3). Transform, rounding, packing and mask are one pass over the rows.
    ///
    /// # Errors
    /// [`Int4Error::Length`], or [`Int4Error::Block`] if the blocks do not fit the rows.
    pub fn new(isa: Isa, x: &[f32], shape: [usize; 2], block: Block, step: Step) -> Result<Self, Int4Error> {
        check_len("values", &shape, x.len(), elements("values", &shape)?)?;
        block.check(shape[1])?;
        let (mut codes, mut unclamped) = (Int4Matrix::zeros(shape)?, BitMatrix::zeros(shape)?);
        let finite = AtomicBool::new(true);
        let columns = shape[1];
        if !x.is_empty() {
            let rows = rows_of_task(columns);
            let tasks = x.par_chunks(rows * columns);
            let tasks = tasks.zip(codes.bytes.par_chunks_mut(rows * columns.div_ceil(2)));
            let tasks = tasks.zip(unclamped.bytes.par_chunks_mut(rows * columns.div_ceil(8)));
            tasks.for_each_init(
                || scratch(columns),
                |scratch, ((x, codes), unclamped)| {
                    let rows =
                        QuantizeRows { x, columns, block, step: step.get(), codes, unclamped, scratch };
                    if !isa.run(rows) {
                        finite.store(false, Ordering::Relaxed);
                    }
                },
            );
        }
        Ok(Self { codes, unclamped, step, block, finite: finite.into_inner() })
    }

    /// The codes, -7 to 7, of the transformed matrix.
    pub const fn codes(&self) -> &Int4Matrix {
        &self.codes
    }

    /// Which elements of the transformed matrix were within `-7 step..=7 step`.
    pub const fn unclamped(&self) -> &BitMatrix {
        &self.unclamped
    }

    /// The step.
    pub const fn step(&self) -> Step {
        self.step
    }

    /// What the rows were transformed in.
    pub const fn block(&self) -> Block {
        self.block
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [usize; 2] {
        self.codes.shape()
    }

    /// Whether the matrix consisted of numbers alone. Products with one that did not are NaN throughout, since a code cannot say so.
    pub const fn is_finite(&self) -> bool {
        self.finite
    }

    /// The step, or NaN if the matrix had an infinity or NaN.
    pub(crate) fn scale(&self) -> f32 {
        if self.finite { self.step.get() } else { f32::NAN }
    }
}

struct QuantizeRows<'a> {
    x: &'a [f32],
    columns: usize,
    block: Block,
    step: f32,
    codes: &'a mut [u8],
    unclamped: &'a mut [u8],
    scratch: &'a mut [f32],
}

impl Kernel for QuantizeRows<'_> {
    /// Whether all values were finite.
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let step = simd.splat(self.step);
        let largest = simd.splat(LARGEST);
        // What is no number leaves NaN in it.
        let mut zero = simd.splat(0.0);
        let codes = self.codes.chunks_exact_mut(self.columns.div_ceil(2));
        let unclamped = self.unclamped.chunks_exact_mut(self.columns.div_ceil(8));
        for ((x, codes), unclamped) in self.x.chunks_exact(self.columns).zip(codes).zip(unclamped) {
            self.scratch[..self.columns].copy_from_slice(x);
            self.scratch[self.columns..].fill(0.0);
            transform(simd, self.scratch, self.block);
            for (i, values) in self.scratch.as_chunks().0.iter().enumerate() {
                let v = simd.load(values);
                zero = simd.add(zero, simd.sub(v, v));
                let ratio = simd.div(v, step);
                let within = simd.at_most(simd.abs(ratio), largest);
                write_vector(codes, i, simd.pack(simd.clamp(ratio, LARGEST)));
                write_vector(unclamped, i, within.to_le_bytes());
            }
            clear_beyond(self.columns, unclamped);
        }
        simd.sum(zero) == 0.0
    }
}

/// Clears the bits of a row behind its last column.
#[inline(always)]
fn clear_beyond(columns: usize, row: &mut [u8]) {
    if let (Some(last), false) = (row.last_mut(), columns.is_multiple_of(8)) {
        *last &= (1 << (columns % 8)) - 1;
    }
}
