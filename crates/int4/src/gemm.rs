//! Integer matrix products, `C[m, n] = sum over k of A[m, k] B[n, k]`, exact in 32 bits.
//!
//! ```text
//! pack both operands into panels                        once, all threads: 4-bit codes become bytes here
//! for each block of C, 8 x 8 tiles of a microkernel     shared by the threads
//!     for each segment of the depth                     most products have one
//!         for each stretch of 2048 elements             the panels of A stay in the second cache, one of B nearly in the first
//!             for each panel of B, for each panel of A
//!                 microkernel: a tile of sums
//!         scale the sums and write them                 while they are in the second cache
//! ```

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

pub(crate) mod microkernel;
mod operand;
pub(crate) mod output;
mod panels;

use rayon::prelude::*;

pub use operand::Operand;

use crate::matrix::{check_equal, check_len, elements};
use crate::simd::{Kernel, Simd};
use crate::{Int4Error, Isa};
use microkernel::{Microkernel, UseMicrokernel, Width};
use output::{Exact, Output, Scaled};
use panels::{Depth, Panels};

/// Tiles of a block of the output, each way.
const TILES: usize = 8;

/// Elements of the depth that are multiplied before the next tile.
const STRETCH: usize = 2048;

/// Multiplications below which threads cost more than they save.
const WORTH_THREADS: usize = 1 << 21;

/// The exact product `A B^T` of `a` `[M, K]` and `b` `[N, K]` into `out` `[M, N]`, row-major, on the threads of the current
/// rayon pool.
///
/// # Errors
/// [`Int4Error::Mismatch`] if the depths differ, [`Int4Error::TooDeep`] if a sum could overflow, [`Int4Error::Length`].
pub fn product(isa: Isa, a: Operand<'_>, b: Operand<'_>, out: &mut [i32]) -> Result<(), Int4Error> {
    let shape = [a.outputs(), b.outputs()];
    check_len("product", &shape, out.len(), elements("product", &shape)?)?;
    let job = Job { a, segments: &[a.depth()], rows: None, output: Exact };
    multiply(isa, &[job], b, out)
}

/// `scale A B^T` of `a` `[M, K]` and `b` `[N, K]` into `out` `[M, N]`, row-major: the exact product, rounded once to f32 and scaled.
///
/// # Errors
/// As [`product`].
pub fn scaled_product(
    isa: Isa,
    a: Operand<'_>,
    b: Operand<'_>,
    scale: f32,
    out: &mut [f32],
) -> Result<(), Int4Error> {
    let shape = [a.outputs(), b.outputs()];
    check_len("product", &shape, out.len(), elements("product", &shape)?)?;
    let output = Scaled { segments: &[scale], rows: &[], add: false };
    multiply(isa, &[Job { a, segments: &[a.depth()], rows: None, output }], b, out)
}

/// The exact products of as many pairs of operands into `out` `[batch, M, N]`; all of one shape.
///
/// # Errors
/// As [`product`], and [`Int4Error::Mismatch`] if the counts or shapes differ.
pub fn product_batched(
    isa: Isa,
    a: &[Operand<'_>],
    b: &[Operand<'_>],
    out: &mut [i32],
) -> Result<(), Int4Error> {
    check_equal("operands of a batch", a.len(), b.len())?;
    let [Some(first_a), Some(first_b)] = [a.first(), b.first()] else {
        return check_len("products", &[0], out.len(), 0);
    };
    let shape = [a.len(), first_a.outputs(), first_b.outputs()];
    check_len("products", &shape, out.len(), elements("products", &shape)?)?;
    for (a, b) in a.iter().zip(b) {
        check_equal("rows of products", shape[1], a.outputs())?;
        check_equal("columns of products", shape[2], b.outputs())?;
        check_equal("depths of products", first_a.depth(), a.depth())?;
        check_depth(*a, *b)?;
    }
    if out.is_empty() {
        return Ok(());
    }
    let products = out.par_chunks_mut(shape[1] * shape[2]);
    products.zip(a).zip(b).try_for_each(|((out, a), b)| product(isa, *a, *b, out))
}

/// A product with a left operand of its own.
pub(crate) struct Job<'a, O> {
    pub(crate) a: Operand<'a>,
    /// Lengths of the consecutive segments that the depth is cut into, one at least. An operand that is not transposed takes
    /// a single one.
    pub(crate) segments: &'a [usize],
    /// The rows of the output that this product is, ascending; all of them if none are named.
    pub(crate) rows: Option<&'a [u32]>,
    pub(crate) output: O,
}

/// The products of the jobs, one after the other, with `b` into `out` `[rows, b's outputs]`.
///
/// # Errors
/// [`Int4Error::Mismatch`] if depths differ, [`Int4Error::TooDeep`] if a sum could overflow.
pub(crate) fn multiply<O: Output>(
    isa: Isa,
    jobs: &[Job<'_, O>],
    b: Operand<'_>,
    out: &mut [O::Value],
) -> Result<(), Int4Error> {
    for job in jobs {
        check_depth(job.a, b)?;
        debug_assert_eq!(job.segments.iter().sum::<usize>(), b.depth());
        debug_assert!(job.segments.len() == 1 || job.a.is_transposed() && b.is_transposed());
    }
    let nibbles = b.is_nibbles() && jobs.iter().all(|job| job.a.is_nibbles());
    let width = if nibbles { Width::Nibbles } else { Width::Bytes };
    isa.with_microkernel(width, Multiply { isa, jobs, b, out });
    Ok(())
}

/// Whether the depths agree and no sum can leave 32 bits.
fn check_depth(a: Operand<'_>, b: Operand<'_>) -> Result<(), Int4Error> {
    check_equal("depths of a product", a.depth(), b.depth())?;
    let most = (1 << 31_usize) / (a.bound() * b.bound()) - 1;
    if a.depth() > most { Err(Int4Error::TooDeep { depth: a.depth(), most }) } else { Ok(()) }
}

struct Multiply<'a, O: Output> {
    isa: Isa,
    jobs: &'a [Job<'a, O>],
    b: Operand<'a>,
    out: &'a mut [O::Value],
}

impl<O: Output> UseMicrokernel for Multiply<'_, O> {
    type Output = ();

    fn with<M: Microkernel>(self, microkernel: M) {
        let Self { isa, jobs, b, out } = self;
        let columns = b.outputs();
        // The jobs cut the same depth in the same way, or there is one.
        let Some(first) = jobs.first().filter(|_| columns > 0) else { return };
        let depth = Depth::new::<M>(first.segments.iter().copied());
        let b = Panels::pack::<M>(isa, b, M::B, &depth);
        for Job { a, rows, output, .. } in jobs {
            let work = a.outputs().saturating_mul(columns).saturating_mul(a.depth());
            let mut a = Panels::pack::<M>(isa, *a, M::A, &depth);
            if M::B.offset != 0 {
                a = a.with_sums(isa, &depth);
            }
            let blocks = blocks::<M, _>(selected(out, columns, *rows));
            let new_sums = || vec![0; TILES * TILES * M::A.lanes * M::B.lanes];
            let compute = |sums: &mut Vec<i32>, block| {
                isa.run(ComputeBlock { microkernel, a: &a, b: &b, depth: &depth, block, output, sums });
            };
            if work < WORTH_THREADS {
                let mut sums = new_sums();
                for block in blocks {
                    compute(&mut sums, block);
                }
            } else {
                blocks.into_par_iter().for_each_init(new_sums, compute);
            }
        }
    }
}

/// The rows of `values` that `rows` names in ascending order, or all.
fn selected<'o, T>(values: &'o mut [T], columns: usize, rows: Option<&[u32]>) -> Vec<&'o mut [T]> {
    let all = values.chunks_exact_mut(columns);
    let Some(rows) = rows else { return all.collect() };
    let mut rows = rows.iter().peekable();
    all.enumerate()
        .filter(|(i, _)| rows.next_if(|&&row| row as usize == *i).is_some())
        .map(|(_, row)| row)
        .collect()
}

/// A part of the output that one thread computes.
struct Block<'o, T> {
    /// The first output of either operand, a multiple of its panels' lanes.
    first: [usize; 2],
    rows: Vec<&'o mut [T]>,
}

/// Cuts the rows of an output into blocks.
fn blocks<M: Microkernel, T>(out: Vec<&mut [T]>) -> Vec<Block<'_, T>> {
    let [height, width] = [TILES * M::A.lanes, TILES * M::B.lanes];
    let mut blocks = Vec::new();
    let mut rows = out.into_iter().peekable();
    let mut row = 0;
    while rows.peek().is_some() {
        let band = blocks.len();
        for out in rows.by_ref().take(height) {
            for (i, part) in out.chunks_mut(width).enumerate() {
                if band + i == blocks.len() {
                    blocks.push(Block { first: [row, i * width], rows: Vec::with_capacity(height) });
                }
                blocks[band + i].rows.push(part);
            }
        }
        row += height;
    }
    blocks
}

struct ComputeBlock<'a, 'o, M, O: Output> {
    microkernel: M,
    a: &'a Panels,
    b: &'a Panels,
    depth: &'a Depth,
    block: Block<'o, O::Value>,
    output: &'a O,
    /// A tile after the other, panel by panel of the left operand.
    sums: &'a mut [i32],
}

impl<M: Microkernel, O: Output> Kernel for ComputeBlock<'_, '_, M, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _simd: S) {
        for segment in 0..self.depth.words.len() {
            self.add_up(segment);
            self.write(segment);
        }
    }
}

impl<M: Microkernel, O: Output> ComputeBlock<'_, '_, M, O> {
    const TILE: usize = M::A.lanes * M::B.lanes;

    /// Panels of either operand in this block.
    #[inline(always)]
    fn panels(&self) -> [usize; 2] {
        let columns = self.block.rows.first().map_or(0, |row| row.len());
        [self.block.rows.len().div_ceil(M::A.lanes), columns.div_ceil(M::B.lanes)]
    }

    /// The sums of all tiles over a segment.
    #[inline(always)]
    fn add_up(&mut self, segment: usize) {
        let [rows, columns] = self.panels();
        let first = [self.block.first[0] / M::A.lanes, self.block.first[1] / M::B.lanes];
        for i in 0..rows {
            let tiles = &mut self.sums[i * TILES * Self::TILE..][..columns * Self::TILE];
            if M::B.offset == 0 {
                tiles.fill(0);
                continue;
            }
            // What the offset is going to add to each row.
            let surplus = self.a.sums(first[0] + i, segment);
            for tile in tiles.chunks_exact_mut(Self::TILE) {
                for (row, surplus) in tile.chunks_exact_mut(M::B.lanes).zip(surplus) {
                    row.fill(-M::B.offset * surplus);
                }
            }
        }
        let words = self.depth.words[segment].clone();
        for begin in words.clone().step_by(STRETCH / M::ELEMENTS) {
            let end = words.end.min(begin + STRETCH / M::ELEMENTS);
            for j in 0..columns {
                let b = &self.b.panel(first[1] + j)[begin * M::B.lanes..end * M::B.lanes];
                for i in 0..rows {
                    let a = &self.a.panel(first[0] + i)[begin * M::A.lanes..end * M::A.lanes];
                    let tile = &mut self.sums[(i * TILES + j) * Self::TILE..][..Self::TILE];
                    self.microkernel.accumulate(a, b, tile);
                }
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, segment: usize) {
        for (i, out) in self.block.rows.iter_mut().enumerate() {
            let tiles = &self.sums[i / M::A.lanes * TILES * Self::TILE..];
            let row = i % M::A.lanes * M::B.lanes;
            for (out, tile) in out.chunks_mut(M::B.lanes).zip(tiles.chunks_exact(Self::TILE)) {
                let sums = &tile[row..][..out.len()];
                self.output.write(self.block.first[0] + i, segment, sums, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::microkernel::Side;
    use super::*;
    use crate::Int8View;

    /// The panels of AMX, read as the microkernels' documentation says, for machines that have no AMX.
    #[derive(Clone, Copy)]
    struct Interleaved;

    impl Microkernel for Interleaved {
        const A: Side = Side { lanes: 32, interleave: 16, offset: 0 };
        const B: Side = Side { lanes: 32, interleave: 1, offset: 0 };
        const ELEMENTS: usize = 4;

        fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
            let word = |panel: &[u32], Side { lanes, interleave, .. }: Side, g: usize, lane: usize| {
                panel[(g / interleave * lanes + lane) * interleave + g % interleave].to_le_bytes()
            };
            for g in 0..a.len() / 32 {
                for (i, acc) in acc.iter_mut().enumerate() {
                    let (a, b) = (word(a, Self::A, g, i / 32), word(b, Self::B, g, i % 32));
                    let products =
                        a.iter().zip(b).map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()));
                    *acc += products.sum::<i32>();
                }
            }
        }
    }

    #[test]
    fn interleaved_panels() {
        for [m, n, k] in [[1, 1, 1], [33, 40, 130], [260, 3, 64], [2, 260, 70], [3, 5, 2100]] {
            let a: Vec<i8> = (0..m * k).map(|i| (i * 37 % 251) as i8).collect();
            let b: Vec<i8> = (0..n * k).map(|i| (i * 91 % 241) as i8).collect();
            let turned: Vec<i8> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
            let b = Operand::from(Int8View::new([n, k], &b).unwrap());
            let mut expected = vec![0; m * n];
            product(Isa::PORTABLE, Int8View::new([m, k], &a).unwrap().into(), b, &mut expected).unwrap();
            for a in [
                Operand::from(Int8View::new([m, k], &a).unwrap()),
                Operand::from(Int8View::new([k, m], &turned).unwrap()).transposed(),
            ] {
                let mut out = vec![0; m * n];
                let jobs = [Job { a, segments: &[k], rows: None, output: Exact }];
                Multiply { isa: Isa::PORTABLE, jobs: &jobs, b, out: &mut out }.with(Interleaved);
                assert!(out == expected, "[{m}, {n}, {k}], transposed: {}", a.is_transposed());
            }
        }
    }
}
