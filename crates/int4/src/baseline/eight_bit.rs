#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use rayon::prelude::*;

use crate::matrix::{check_len, elements};
use crate::random::Key;
use crate::rows::{largest_magnitude, rows_of_task, scratch, write_vector};
use crate::simd::{Kernel, LANES, Simd};
use crate::split::round_by_chance;
use crate::{Int4Error, Int8View, Isa};

/// How a matrix becomes codes. The step is such that the largest magnitude has the largest code, so nothing is clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// -127 to 127, half to even.
    Nearest,
    /// -127 to 127, up or down by chance: unbiased.
    ByChance(Key),
    /// -7 to 7, up or down by chance: 4 bits, minimax.
    Minimax(Key),
    /// 0 and plus or minus 1, 2, 4, … 64, to a neighbour by chance: the logarithmic unbiased quantizer of 4 bits (Chmiel
    /// et al., 2021, *Logarithmic Unbiased Quantization*), stochastic underflow below 1 included.
    Logarithmic(Key),
}

impl Rounding {
    const fn largest(self) -> f32 {
        match self {
            Self::Nearest | Self::ByChance(_) => 127.0,
            Self::Minimax(_) => 7.0,
            Self::Logarithmic(_) => 64.0,
        }
    }
}

/// A matrix as `step * codes`, a byte a code, one step for all.
#[derive(Debug, Clone, PartialEq)]
pub struct EightBit {
    shape: [usize; 2],
    codes: Vec<i8>,
    step: f32,
}

impl EightBit {
    /// Quantizes `x` `[rows, columns]`. Draws are those of the row and column.
    ///
    /// # Errors
    /// [`Int4Error::Length`].
    pub fn new(isa: Isa, x: &[f32], shape: [usize; 2], rounding: Rounding) -> Result<Self, Int4Error> {
        check_len("values", &shape, x.len(), elements("values", &shape)?)?;
        let step = largest_magnitude(isa, x) / rounding.largest();
        // A step that is not normal has no reciprocal.
        let step = if step < f32::MIN_POSITIVE { 0.0 } else { step };
        let mut codes = vec![0; x.len()];
        let columns = shape[1];
        if !x.is_empty() && step != 0.0 {
            let rows = rows_of_task(columns);
            let tasks = codes.par_chunks_mut(rows * columns).zip(x.par_chunks(rows * columns));
            tasks.enumerate().for_each_init(
                || scratch(columns),
                |scratch, (i, (codes, x))| {
                    isa.run(Rows { x, columns, first: i * rows, step, rounding, codes, scratch });
                },
            );
        }
        Ok(Self { shape, codes, step })
    }

    /// The codes.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// The same codes, for a product.
    pub fn view(&self) -> Int8View<'_> {
        Int8View { shape: self.shape, codes: &self.codes }
    }

    /// The step: 0 if the matrix was zero, NaN if it had an infinity or NaN.
    pub const fn step(&self) -> f32 {
        self.step
    }
}

struct Rows<'a> {
    x: &'a [f32],
    columns: usize,
    first: usize,
    step: f32,
    rounding: Rounding,
    codes: &'a mut [i8],
    scratch: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let step = simd.splat(self.step);
        let largest = self.rounding.largest();
        let rows = self.x.chunks_exact(self.columns).zip(self.codes.chunks_exact_mut(self.columns));
        for (i, (x, codes)) in rows.enumerate() {
            self.scratch[..self.columns].copy_from_slice(x);
            self.scratch[self.columns..].fill(0.0);
            let row = self.first + i;
            let columns = (0_u32..).step_by(LANES);
            for (i, (values, column)) in self.scratch.as_chunks().0.iter().zip(columns).enumerate() {
                let v = simd.clamp(simd.div(simd.load(values), step), largest);
                let rounded = match self.rounding {
                    Rounding::Nearest => v,
                    Rounding::ByChance(key) | Rounding::Minimax(key) => {
                        round_by_chance(simd, v, key.row(row).draw(simd, column))
                    }
                    Rounding::Logarithmic(key) => round_to_power(simd, v, key.row(row).draw(simd, column)),
                };
                write_vector(codes, i, simd.to_bytes(rounded));
            }
        }
    }
}

/// To one of the neighbours among 0, 1, 2, 4, … 64 and their negatives, with the probability that keeps the expectation.
#[inline(always)]
fn round_to_power<S: Simd>(simd: S, v: S::Floats, draws: S::Floats) -> S::Floats {
    let magnitude = simd.abs(v);
    let mut below = simd.splat(0.0);
    for power in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        let power = simd.splat(power);
        below = simd.max(below, simd.keep(power, simd.at_most(power, magnitude)));
    }
    // The next power is twice the one below, or 1 above 0.
    let gap = simd.max(below, simd.splat(1.0));
    let down = simd.at_most(simd.div(simd.sub(magnitude, below), gap), draws);
    let rounded = simd.add(below, simd.keep(gap, !down));
    let negative = simd.at_most(v, simd.splat(0.0));
    simd.sub(simd.keep(rounded, !negative), simd.keep(rounded, negative))
}
