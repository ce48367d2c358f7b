//! The learned step size quantizer (paper, section 3.1 and appendix A.3 to A.5).

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use crate::hadamard::transform;
use crate::matrix::{check_equal, check_len, elements};
use crate::rows::{RowSum, sum_rows};
use crate::simd::{LANES, Simd};
use crate::{Block, Int4Error, Isa};

/// The largest code.
pub(crate) const LARGEST: f32 = 7.0;

/// The distance of two neighbouring values of a quantizer: positive, one for a whole tensor, learned.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Step(f32);

impl Step {
    /// The smallest step.
    pub const MIN: Self = Self(f32::MIN_POSITIVE);

    /// A step.
    ///
    /// # Errors
    /// [`Int4Error::Step`] unless `value` is finite and at least [`Step::MIN`].
    pub fn new(value: f32) -> Result<Self, Int4Error> {
        let fits = value.is_finite() && value >= Self::MIN.0;
        if fits { Ok(Self(value)) } else { Err(Int4Error::Step(value.to_string())) }
    }

    /// What an optimizer has made of a step, kept positive: values below [`Step::MIN`] become it.
    ///
    /// # Errors
    /// [`Int4Error::Step`] if `value` is infinite or NaN.
    pub fn from_parameter(value: f32) -> Result<Self, Int4Error> {
        if value.is_finite() {
            Ok(Self(value.max(Self::MIN.0)))
        } else {
            Err(Int4Error::Step(value.to_string()))
        }
    }

    /// Where learning begins, `2 mean|v| / sqrt(7)`, `v` being `x` `[rows, columns]` after the Hadamard transform. [`Step::MIN`] for
    /// zeros.
    ///
    /// # Errors
    /// [`Int4Error::Length`], [`Int4Error::Block`], or [`Int4Error::Step`] if `x` has an infinity or NaN.
    pub fn initial(isa: Isa, x: &[f32], shape: [usize; 2], block: Block) -> Result<Self, Int4Error> {
        check_len("values", &shape, x.len(), elements("values", &shape)?)?;
        block.check(shape[1])?;
        let mean = sum_rows(isa, x, shape[1], &Magnitudes { block }) / x.len().max(1) as f64;
        Self::from_parameter((2.0 * mean / f64::from(LARGEST).sqrt()) as f32)
    }

    /// The step as a number.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// The gradient of the loss with respect to this step by the straight-through rule, scaled by `1 / sqrt(elements * 7)`.
    ///
    /// A quantized value `s int(v / s)` has the derivative `int(v / s) - v / s` where `v` was not clamped, and the code
    /// itself, 7 or -7, where it was. With `G` the gradient with respect to the quantized values, the two parts are
    /// `codes`, the sum of `G` times the codes, and `values`, the sum over the unclamped elements of `G v`. The transform is orthonormal, so
    /// the latter is also the sum of the gradient of the untransformed matrix times that matrix.
    pub fn gradient(self, codes: f64, values: f64, elements: usize) -> f32 {
        let scale = 1.0 / (elements as f64 * f64::from(LARGEST)).sqrt();
        (scale * (codes - values / f64::from(self.0))) as f32
    }
}

/// Of two matrices that are to be multiplied, `[rows, columns]` each, the block length with the smallest product of their mean squared
/// quantization errors, each matrix with its initial step (paper, appendix A.5), and the steps.
///
/// # Errors
/// As [`Step::initial`], and [`Int4Error::Mismatch`] if the columns differ.
pub fn search_block(
    isa: Isa,
    x: (&[f32], [usize; 2]),
    w: (&[f32], [usize; 2]),
) -> Result<BlockChoice, Int4Error> {
    check_equal("columns of factors", x.1[1], w.1[1])?;
    let choice = |block| -> Result<_, Int4Error> {
        let mut choice = BlockChoice { block, steps: [Step::MIN; 2], errors: [0.0; 2] };
        for (i, (values, shape)) in [x, w].into_iter().enumerate() {
            choice.steps[i] = Step::initial(isa, values, shape, block)?;
            choice.errors[i] = mean_squared_error(isa, values, shape, block, choice.steps[i])?;
        }
        Ok(choice)
    };
    let mut best = choice(Block::NONE)?;
    for block in Block::all(x.1[1]).skip(1) {
        let other = choice(block)?;
        if other.error() < best.error() {
            best = other;
        }
    }
    Ok(best)
}

/// What [`search_block`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockChoice {
    /// The block length.
    pub block: Block,
    /// The initial steps of both matrices.
    pub steps: [Step; 2],
    /// Their mean squared errors.
    pub errors: [f64; 2],
}

impl BlockChoice {
    fn error(&self) -> f64 {
        self.errors[0] * self.errors[1]
    }
}

/// The mean squared difference between `x` `[rows, columns]` and what its quantized Hadamard transform stands for.
///
/// # Errors
/// [`Int4Error::Length`] or [`Int4Error::Block`].
pub fn mean_squared_error(
    isa: Isa,
    x: &[f32],
    shape: [usize; 2],
    block: Block,
    step: Step,
) -> Result<f64, Int4Error> {
    check_len("values", &shape, x.len(), elements("values", &shape)?)?;
    block.check(shape[1])?;
    let sum = sum_rows(isa, x, shape[1], &SquaredErrors { block, step: step.get() });
    Ok(sum / x.len().max(1) as f64)
}

struct Magnitudes {
    block: Block,
}

impl RowSum for Magnitudes {
    #[inline(always)]
    fn add_up<S: Simd>(&self, simd: S, _i: usize, row: &mut [f32]) -> f64 {
        transform(simd, row, self.block);
        let mut sum = simd.splat(0.0);
        for values in row.as_chunks::<LANES>().0 {
            sum = simd.add(sum, simd.abs(simd.load(values)));
        }
        f64::from(simd.sum(sum))
    }
}

struct SquaredErrors {
    block: Block,
    step: f32,
}

impl RowSum for SquaredErrors {
    #[inline(always)]
    fn add_up<S: Simd>(&self, simd: S, _i: usize, row: &mut [f32]) -> f64 {
        transform(simd, row, self.block);
        let step = simd.splat(self.step);
        let mut sum = simd.splat(0.0);
        for values in row.as_chunks::<LANES>().0 {
            let v = simd.load(values);
            let code = simd.round(simd.clamp(simd.div(v, step), LARGEST));
            let error = simd.sub(v, simd.mul(step, code));
            sum = simd.add(sum, simd.mul(error, error));
        }
        f64::from(simd.sum(sum))
    }
}
