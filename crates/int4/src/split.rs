//! Bit splitting (paper, section 4.2).

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use rayon::prelude::*;

use crate::lsq::LARGEST;
use crate::matrix::{check_len, elements};
use crate::random::Key;
use crate::rows::{largest_magnitude, rows_of_task, scratch, vector_bytes, write_vector};
use crate::simd::{CODE_BYTES, Kernel, LANES, Simd};
use crate::{Int4Error, Int4Matrix, Isa};

/// Upper steps in a lower one: the residual of rounding lies within half an upper step, and the lower codes reach 7.
const FINER: f32 = 2.0 * LARGEST;

/// A gradient as the sum of two 4-bit matrices, `steps[0] * upper + steps[1] * lower`.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitGradient {
    /// The rows of the upper matrix, then those of the lower.
    codes: Int4Matrix,
    steps: [f32; 2],
}

impl SplitGradient {
    /// Splits `dy` `[rows, columns]`. The upper step is a seventh of the largest magnitude, and its codes are rounded half to
    /// even; what that leaves is in steps of a fourteenth of it, rounded up or down by chance, the draws being those of `key` for
    /// the row and column. The expectation over the draws is `dy` itself.
    ///
    /// # Errors
    /// [`Int4Error::Length`], or [`Int4Error::TooLarge`] for more than `2^31` rows.
    pub fn new(isa: Isa, dy: &[f32], shape: [usize; 2], key: Key) -> Result<Self, Int4Error> {
        check_len("gradient", &shape, dy.len(), elements("gradient", &shape)?)?;
        let [rows, columns] = shape;
        if rows > 1 << 31 {
            return Err(Int4Error::TooLarge { what: "gradient", shape: shape.to_vec() });
        }
        let mut codes = Int4Matrix::zeros([2 * rows, columns])?;
        let steps = steps(isa, dy);
        if !dy.is_empty() {
            let task = rows_of_task(columns);
            let bytes = columns.div_ceil(2);
            let (upper, lower) = codes.bytes.split_at_mut(rows * bytes);
            let tasks = dy.par_chunks(task * columns);
            let tasks = tasks.zip(upper.par_chunks_mut(task * bytes)).zip(lower.par_chunks_mut(task * bytes));
            tasks.enumerate().for_each_init(
                || scratch(columns),
                |scratch, (i, ((dy, upper), lower))| {
                    isa.run(SplitRows { dy, columns, first: i * task, key, steps, upper, lower, scratch });
                },
            );
        }
        Ok(Self { codes, steps })
    }

    /// Rows and columns of the gradient.
    pub const fn shape(&self) -> [usize; 2] {
        let [rows, columns] = self.codes.shape();
        [rows / 2, columns]
    }

    /// The codes: row `i` of the upper matrix, and at `rows + i` of the lower.
    pub const fn codes(&self) -> &Int4Matrix {
        &self.codes
    }

    /// The upper and the lower step; both NaN if the gradient had an infinity or NaN, both 0 if it was zero.
    pub const fn steps(&self) -> [f32; 2] {
        self.steps
    }
}

/// The upper and the lower step for a gradient.
fn steps(isa: Isa, dy: &[f32]) -> [f32; 2] {
    let upper = largest_magnitude(isa, dy) / LARGEST;
    let lower = upper / FINER;
    // A step that is not normal has no reciprocal.
    if lower < f32::MIN_POSITIVE { [0.0; 2] } else { [upper, lower] }
}

struct SplitRows<'a> {
    dy: &'a [f32],
    columns: usize,
    first: usize,
    key: Key,
    steps: [f32; 2],
    upper: &'a mut [u8],
    lower: &'a mut [u8],
    scratch: &'a mut [f32],
}

impl Kernel for SplitRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Steps of 0 belong to a gradient of zeros, whose codes do not depend on what it is divided by.
        let steps = self.steps.map(|step| simd.splat(if step == 0.0 { 1.0 } else { step }));
        let bytes = self.columns.div_ceil(2);
        let outputs = self.upper.chunks_exact_mut(bytes).zip(self.lower.chunks_exact_mut(bytes));
        for (i, (dy, (upper, lower))) in self.dy.chunks_exact(self.columns).zip(outputs).enumerate() {
            let key = self.key.row(self.first + i);
            self.scratch[..self.columns].copy_from_slice(dy);
            self.scratch[self.columns..].fill(0.0);
            let columns = (0_u32..).step_by(LANES);
            for (i, (values, column)) in self.scratch.as_chunks().0.iter().zip(columns).enumerate() {
                let codes = split(simd, values, steps, key.draw(simd, column));
                write_vector(upper, i, codes[0]);
                write_vector(lower, i, codes[1]);
            }
        }
    }
}

/// The upper and lower codes of a vector.
#[inline(always)]
fn split<S: Simd>(
    simd: S,
    values: &[f32; LANES],
    [upper_step, lower_step]: [S::Floats; 2],
    draws: S::Floats,
) -> [[u8; CODE_BYTES]; 2] {
    let v = simd.load(values);
    let upper = simd.round(simd.clamp(simd.div(v, upper_step), LARGEST));
    let residual = simd.sub(v, simd.mul(upper_step, upper));
    let lower = round_by_chance(simd, simd.div(residual, lower_step), draws);
    [simd.pack(upper), simd.pack(simd.clamp(lower, LARGEST))]
}

/// Up with the probability of the fraction, down otherwise.
#[inline(always)]
pub(crate) fn round_by_chance<S: Simd>(simd: S, v: S::Floats, draws: S::Floats) -> S::Floats {
    let floor = simd.floor(v);
    // 0 where the draw is below the fraction, whatever is no number included.
    let down = simd.at_most(simd.sub(v, floor), draws);
    simd.add(floor, simd.keep(simd.splat(1.0), !down))
}

/// The norms of the rows of a matrix of codes.
pub(crate) fn row_norms(isa: Isa, matrix: &Int4Matrix) -> Vec<f32> {
    let [rows, columns] = matrix.shape();
    let mut norms = vec![0.0; rows];
    let task = rows_of_task(columns);
    let bytes = columns.div_ceil(2);
    if bytes > 0 {
        let tasks = norms.par_chunks_mut(task).zip(matrix.bytes.par_chunks(task * bytes));
        tasks.for_each(|(out, codes)| isa.run(Norms { out, codes, bytes }));
    }
    norms
}

struct Norms<'a> {
    out: &'a mut [f32],
    codes: &'a [u8],
    bytes: usize,
}

impl Kernel for Norms<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (norm, row) in self.out.iter_mut().zip(self.codes.chunks_exact(self.bytes)) {
            let mut sum = simd.splat(0.0);
            for i in 0..self.bytes.div_ceil(CODE_BYTES) {
                let codes = simd.unpack(vector_bytes(row, i));
                sum = simd.add(sum, simd.mul(codes, codes));
            }
            *norm = simd.sum(sum).sqrt();
        }
    }
}
