//! Matrix products over strided views, by the `gemm` crate.

#![expect(unsafe_code, reason = "gemm takes pointers; the views check that it stays inside their slices")]

use gemm::Parallelism;

/// Multiplications below which threads cost more than they save.
const WORTH_THREADS: usize = 1 << 22;

/// A matrix inside a slice: element `(i, j)` lies at `i * row_stride + j * column_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    shape: [usize; 2],
    strides: [usize; 2],
}

/// A row-major matrix to be written.
pub(crate) struct MatrixMut<'a> {
    values: &'a mut [f32],
    shape: [usize; 2],
    row_stride: usize,
}

/// What a product does with what its output holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Replace,
    Add,
}

/// Which threads compute a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The caller's.
    This,
    /// All of the pool, when there is enough to do.
    Pool,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix at the front of `values`.
    ///
    /// # Panics
    /// If the slice is too short.
    pub(crate) fn new(values: &'a [f32], shape: [usize; 2], row_stride: usize) -> Self {
        check(values.len(), shape, row_stride);
        Self { values, shape, strides: [row_stride, 1] }
    }

    /// The transpose, the same values.
    pub(crate) fn transposed(self) -> Self {
        let ([rows, columns], [down, right]) = (self.shape, self.strides);
        Self { values: self.values, shape: [columns, rows], strides: [right, down] }
    }
}

impl<'a> MatrixMut<'a> {
    /// A row-major matrix at the front of `values`.
    ///
    /// # Panics
    /// If the slice is too short.
    pub(crate) fn new(values: &'a mut [f32], shape: [usize; 2], row_stride: usize) -> Self {
        check(values.len(), shape, row_stride);
        Self { values, shape, row_stride }
    }
}

/// # Panics
/// If a matrix does not fit, or its rows overlap.
fn check(len: usize, [rows, columns]: [usize; 2], row_stride: usize) {
    assert!(
        columns <= row_stride || rows <= 1,
        "rows of {columns} values overlap at a stride of {row_stride}"
    );
    let end = rows.checked_sub(1).and_then(|last| last.checked_mul(row_stride)?.checked_add(columns));
    let fits = rows == 0 || end.is_some_and(|end| end <= len);
    assert!(fits, "a matrix [{rows}, {columns}] of row stride {row_stride} is longer than {len} values");
}

/// `a b`, row-major, in new memory that nobody has to clear first.
///
/// # Panics
/// If the shapes do not fit each other.
pub(crate) fn new_product(operands: [Matrix<'_>; 2], threads: Threads) -> Vec<f32> {
    let shape = product_shape(operands);
    let len = shape[0].checked_mul(shape[1]).expect("a product that fits in memory");
    let mut out = Vec::with_capacity(len);
    // SAFETY: `out` is a new allocation of `len` values, and `len` is that of a matrix of the product's shape without gaps.
    // With `Output::Replace` gemm writes each of them and reads none, so all are initialized then.
    unsafe {
        gemm(out.as_mut_ptr(), shape[1], Output::Replace, 1.0, operands, threads);
        out.set_len(len);
    }
    out
}

/// `out = factor a b`, or `out += factor a b`.
///
/// # Panics
/// If the shapes do not fit each other.
pub(crate) fn product(
    out: MatrixMut<'_>,
    mode: Output,
    factor: f32,
    operands: [Matrix<'_>; 2],
    threads: Threads,
) {
    let MatrixMut { values: out, shape, row_stride } = out;
    assert_eq!(product_shape(operands), shape, "the shape of the output");
    // SAFETY: `check` has seen that every element of the output lies inside its slice; it is borrowed exclusively, and its
    // rows do not overlap.
    unsafe { gemm(out.as_mut_ptr(), row_stride, mode, factor, operands, threads) }
}

/// # Panics
/// If the shapes do not fit each other.
fn product_shape([a, b]: [Matrix<'_>; 2]) -> [usize; 2] {
    assert_eq!(a.shape[1], b.shape[0], "{:?} x {:?}", a.shape, b.shape);
    [a.shape[0], b.shape[1]]
}

/// # Safety
/// `out` points to a row-major matrix of the product's shape, rows `row_stride` apart without overlap, that nobody else
/// uses meanwhile; with [`Output::Add`] it is initialized. The operands' shapes fit each other.
unsafe fn gemm(
    out: *mut f32,
    row_stride: usize,
    mode: Output,
    factor: f32,
    [a, b]: [Matrix<'_>; 2],
    threads: Threads,
) {
    let ([m, k], n) = (a.shape, b.shape[1]);
    let work = m.saturating_mul(n).saturating_mul(k);
    let pool = threads == Threads::Pool && work >= WORTH_THREADS;
    let parallelism = if pool { Parallelism::Rayon(0) } else { Parallelism::None };
    let old = if mode == Output::Add { 1.0 } else { 0.0 };
    // Slices are no longer than `isize::MAX` bytes, so strides that lead to elements fit.
    let stride = |stride: usize| stride.cast_signed();
    // SAFETY: `check` has seen for both operands that every element lies inside its slice; transposing changes the names
    // of the elements, not the set. The caller answers for the output.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            1,
            stride(row_stride),
            mode == Output::Add,
            a.values.as_ptr(),
            stride(a.strides[1]),
            stride(a.strides[0]),
            b.values.as_ptr(),
            stride(b.strides[1]),
            stride(b.strides[0]),
            old,
            factor,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_views_give_the_plain_product() {
        let values: Vec<f32> = (0..60u8).map(|i| f32::from(i % 7) - 3.0).collect();
        // a: rows 1..4, columns 2..6 of [6, 10]; b: the transpose of [5, 4] with row stride 6.
        let a = Matrix::new(&values[12..], [3, 4], 10);
        let b = Matrix::new(&values, [5, 4], 6).transposed();
        let mut out = vec![1.0; 3 * 8];
        product(MatrixMut::new(&mut out, [3, 5], 8), Output::Add, 0.5, [a, b], Threads::This);
        for (i, row) in out.chunks(8).enumerate() {
            for (j, &found) in row.iter().enumerate() {
                let dot: f32 = (0..4).map(|k| values[12 + 10 * i + k] * values[6 * j % 60 + k]).sum();
                let expected = if j < 5 { 1.0 + 0.5 * dot } else { 1.0 };
                assert_eq!(found, expected, "({i}, {j})");
            }
        }
    }

    #[test]
    fn new_memory_is_written_whole() {
        let values: Vec<f32> = (0..60u8).map(|i| f32::from(i % 7) - 3.0).collect();
        for [m, k, n] in [[3, 4, 5], [1, 1, 1], [7, 8, 3], [4, 0, 6], [0, 3, 2]] {
            let a = Matrix::new(&values, [m, k], k.max(1));
            let b = Matrix::new(&values, [n, k], k.max(1)).transposed();
            let mut expected = vec![f32::NAN; m * n];
            let out = MatrixMut::new(&mut expected, [m, n], n);
            product(out, Output::Replace, 1.0, [a, b], Threads::This);
            assert_eq!(new_product([a, b], Threads::This), expected, "{m} x {k} x {n}");
        }
    }

    #[test]
    #[should_panic(expected = "longer than 11 values")]
    fn a_matrix_that_does_not_fit_is_refused() {
        Matrix::new(&[0.0; 11], [3, 4], 4);
    }
}
