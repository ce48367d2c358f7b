//! Passes over the rows of float matrices. A row is copied to scratch memory that ends in zeros at a multiple of
//! [`LANES`], so that passes have whole vectors and a row stays in the first cache for all that is done to it.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use rayon::prelude::*;

use crate::Isa;
use crate::simd::{Kernel, LANES, Simd};

/// Values of a task: some tens of microseconds of work. What a task is depends on the shape alone, so that sums are the same
/// with any number of threads.
const TASK: usize = 1 << 15;

/// Rows of a task.
pub(crate) const fn rows_of_task(columns: usize) -> usize {
    let rows = TASK / if columns == 0 { 1 } else { columns };
    if rows == 0 { 1 } else { rows }
}

/// Scratch memory for a row.
pub(crate) fn scratch(columns: usize) -> Vec<f32> {
    vec![0.0; columns.next_multiple_of(LANES)]
}

/// The largest magnitude in `x`, 0 if it is empty, or NaN if it has an infinity or NaN.
pub(crate) fn largest_magnitude(isa: Isa, x: &[f32]) -> f32 {
    // Of NaN and another, `f32::max` gives the other.
    let larger = |a: f32, b: f32| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) };
    x.par_chunks(TASK).map(|x| isa.run(Largest(x))).reduce(|| 0.0, larger)
}

struct Largest<'a>(&'a [f32]);

impl Kernel for Largest<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let (vectors, tail) = self.0.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..tail.len()].copy_from_slice(tail);
        let mut largest = simd.splat(0.0);
        // What is no number leaves NaN in it.
        let mut zero = simd.splat(0.0);
        for values in vectors.iter().chain([&last]) {
            let v = simd.load(values);
            zero = simd.add(zero, simd.sub(v, v));
            largest = simd.max(simd.abs(v), largest);
        }
        simd.largest(largest) + simd.sum(zero)
    }
}

/// The `N` bytes of vector `i` of a packed row, zeros behind its end.
#[inline(always)]
pub(crate) fn vector_bytes<const N: usize>(row: &[u8], i: usize) -> [u8; N] {
    let bytes = row.get(i * N..).unwrap_or_default();
    if let Some(whole) = bytes.first_chunk() {
        return *whole;
    }
    let mut padded = [0; N];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Writes the bytes of vector `i` of a row, as far as that goes.
#[inline(always)]
pub(crate) fn write_vector<T: Copy, const N: usize>(row: &mut [T], i: usize, bytes: [T; N]) {
    let row = row.get_mut(i * N..).unwrap_or_default();
    if let Some(whole) = row.first_chunk_mut() {
        *whole = bytes;
    } else {
        row.copy_from_slice(&bytes[..row.len()]);
    }
}

/// A sum over all elements of a matrix, computed row by row.
pub(crate) trait RowSum: Sync {
    /// The sum over row `i`, which lies in `row` and ends in zeros at a multiple of [`LANES`]; `row` may be overwritten.
    fn add_up<S: Simd>(&self, simd: S, i: usize, row: &mut [f32]) -> f64;
}

/// The total of [`RowSum::add_up`] over the rows of `x`.
pub(crate) fn sum_rows<R: RowSum>(isa: Isa, x: &[f32], columns: usize, sum: &R) -> f64 {
    if x.is_empty() {
        return 0.0;
    }
    let rows = rows_of_task(columns);
    let tasks = x.par_chunks(rows * columns).enumerate().map_init(
        || scratch(columns),
        |scratch, (task, x)| isa.run(SumRows { x, columns, first: task * rows, scratch, sum }),
    );
    tasks.collect::<Vec<f64>>().iter().sum()
}

struct SumRows<'a, R> {
    x: &'a [f32],
    columns: usize,
    first: usize,
    scratch: &'a mut [f32],
    sum: &'a R,
}

impl<R: RowSum> Kernel for SumRows<'_, R> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let mut total = 0.0;
        for (i, row) in self.x.chunks_exact(self.columns).enumerate() {
            self.scratch[..self.columns].copy_from_slice(row);
            self.scratch[self.columns..].fill(0.0);
            total += self.sum.add_up(simd, self.first + i, self.scratch);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_at_the_end_of_a_row_are_cut_off() {
        let mut row = [9; 11];
        write_vector(&mut row, 0, [1, 2, 3, 4]);
        write_vector(&mut row, 2, [5, 6, 7, 8]);
        write_vector(&mut row, 3, [0; 4]);
        assert_eq!(row, [1, 2, 3, 4, 9, 9, 9, 9, 5, 6, 7]);
        assert_eq!(vector_bytes(&row, 0), [1, 2, 3, 4]);
        assert_eq!(vector_bytes(&row, 2), [5, 6, 7, 0]);
        assert_eq!(vector_bytes::<4>(&row, 3), [0; 4]);
    }
}
