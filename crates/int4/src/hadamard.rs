#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use rayon::prelude::*;

use crate::matrix::{check_len, elements};
use crate::rows::{rows_of_task, scratch};
use crate::simd::{Kernel, LANES, Simd};
use crate::{Int4Error, Isa};

/// The length of the blocks that a row is transformed in: a power of two from 1 to 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(usize);

impl Block {
    /// No transform.
    pub const NONE: Self = Self(1);
    /// The longest blocks.
    pub const MAX: Self = Self(1024);

    /// Blocks of `len` values in rows of `columns`.
    ///
    /// # Errors
    /// [`Int4Error::Block`] if `len` is no power of two up to 1024, or does not divide `columns`.
    pub fn new(len: usize, columns: usize) -> Result<Self, Int4Error> {
        let block = Self(len);
        if !len.is_power_of_two() || block > Self::MAX {
            return Err(Int4Error::Block { block: len, columns });
        }
        block.check(columns)?;
        Ok(block)
    }

    /// Every block length for rows of `columns`, from 1 on.
    pub fn all(columns: usize) -> impl Iterator<Item = Self> {
        (0..=10).map(|log2| Self(1 << log2)).filter(move |block| columns.is_multiple_of(block.0))
    }

    /// Values of a block.
    pub const fn size(self) -> usize {
        self.0
    }

    /// Whether rows of `columns` consist of such blocks.
    pub(crate) fn check(self, columns: usize) -> Result<(), Int4Error> {
        if columns.is_multiple_of(self.0) { Ok(()) } else { Err(Int4Error::Block { block: self.0, columns }) }
    }
}

/// Multiplies every row of `x` `[rows, columns]`, row-major, by the block-diagonal matrix of orthonormal Hadamard matrices of
/// length `block`, in place (paper, section 3.3). It is its own inverse, up to rounding.
///
/// # Errors
/// [`Int4Error::Length`], or [`Int4Error::Block`] if the blocks do not fit the rows.
pub fn hadamard(isa: Isa, x: &mut [f32], shape: [usize; 2], block: Block) -> Result<(), Int4Error> {
    check_len("values", &shape, x.len(), elements("values", &shape)?)?;
    block.check(shape[1])?;
    let columns = shape[1];
    if x.is_empty() || block == Block::NONE {
        return Ok(());
    }
    x.par_chunks_mut(rows_of_task(columns) * columns).for_each_init(
        || scratch(columns),
        |scratch, rows| isa.run(InPlace { rows, columns, block, scratch }),
    );
    Ok(())
}

struct InPlace<'a> {
    rows: &'a mut [f32],
    columns: usize,
    block: Block,
    scratch: &'a mut [f32],
}

impl Kernel for InPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in self.rows.chunks_exact_mut(self.columns) {
            if self.columns.is_multiple_of(LANES) {
                transform(simd, row, self.block);
            } else {
                self.scratch[..self.columns].copy_from_slice(row);
                transform(simd, self.scratch, self.block);
                row.copy_from_slice(&self.scratch[..self.columns]);
            }
        }
    }
}

/// Transforms a row whose length is a multiple of [`LANES`].
///
/// For strides `block / 2`, `block / 4`, … 1, every two values a stride apart become their sum and their difference; then every
/// value is multiplied by `1 / sqrt(block)`, rounded to f32.
#[inline(always)]
pub(crate) fn transform<S: Simd>(simd: S, row: &mut [f32], block: Block) {
    let len = block.size();
    if len == 1 {
        return;
    }
    let mut stride = len / 2;
    while stride >= LANES {
        for pair in row.chunks_exact_mut(2 * stride) {
            let (first, second) = pair.split_at_mut(stride);
            for (a, b) in first.as_chunks_mut().0.iter_mut().zip(second.as_chunks_mut().0) {
                let (first, second) = (simd.load(a), simd.load(b));
                simd.store(simd.add(first, second), a);
                simd.store(simd.sub(first, second), b);
            }
        }
        stride /= 2;
    }
    let norm = simd.splat(1.0 / (len as f32).sqrt());
    for values in row.as_chunks_mut().0 {
        let v = small_strides(simd, simd.load(values), len);
        simd.store(simd.mul(v, norm), values);
    }
}

#[inline(always)]
fn small_strides<S: Simd>(simd: S, mut v: S::Floats, len: usize) -> S::Floats {
    if len >= 16 {
        v = simd.butterfly::<8>(v);
    }
    if len >= 8 {
        v = simd.butterfly::<4>(v);
    }
    if len >= 4 {
        v = simd.butterfly::<2>(v);
    }
    simd.butterfly::<1>(v)
}
