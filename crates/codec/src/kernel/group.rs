//! Uniform quantizers on groups of values: the symmetric one here, the asymmetric one in [`affine`], and the inverse of both.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

pub(crate) mod affine;
mod portable;
mod simd;

use super::{Kernel, WHOLE, bits};
use crate::element::Element;
use crate::scale::{Factors, MessageScale};
use crate::simd::Simd;

/// Codes of more bits than a byte holds are packed by other operations.
const BYTE: u32 = 8;

/// The longest group.
const MAX_GROUP: usize = 1024;

/// The smallest positive f16: a step of at least this has a finite reciprocal.
const LEAST_STEP: f32 = 1.0 / (1 << 24) as f32;

/// How a step becomes f16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepRounding {
    /// To the smallest f16 that is not below, so that no value is clipped.
    Up,
    /// To the nearest, at least [`LEAST_STEP`].
    Nearest,
}

/// Quantizes groups, the last one maybe shorter. With `y` the scaled values of one and `largest = 2^(bits - 1) - 1`:
///
/// 1. `step` is `max |y| / largest`, rounded as `rounding` says; `r = 1 / step`, or 0 if `step` is 0.
/// 2. `code = round_half_even(clamp(y * r, -largest, largest)) + largest`.
pub(crate) struct Encode<'a, E> {
    pub(crate) x: &'a [E],
    /// Values of a group.
    pub(crate) group: usize,
    /// Bits of a code.
    pub(crate) bits: u32,
    pub(crate) rounding: StepRounding,
    pub(crate) scale: Factors,
    /// One a group.
    pub(crate) steps: &'a mut [[u8; 2]],
    /// The codes of all groups, exactly.
    pub(crate) codes: &'a mut [u8],
}

impl<E: Element> Kernel for Encode<'_, E> {
    type Output = ();

    fn portable(self) {
        portable::encode(self);
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let Some(scale) = self.scale.moderate() else { return self.portable() };
        let (whole, rest) = self.split();
        simd::encode(simd, whole, scale);
        rest.portable();
    }
}

impl<E> Encode<'_, E> {
    /// The groups for vector kernels, and the rest.
    fn split(self) -> (Self, Self) {
        let groups = vector_groups(self.x.len(), self.group);
        let (x, last_x) = self.x.split_at(groups * self.group);
        let (steps, last_steps) = self.steps.split_at_mut(groups);
        let (codes, last_codes) = self.codes.split_at_mut(bits::packed_len(x.len(), self.bits));
        let Self { group, bits, rounding, scale, .. } = self;
        let whole = Self { x, group, bits, rounding, scale, steps, codes };
        (whole, Self { x: last_x, group, bits, rounding, scale, steps: last_steps, codes: last_codes })
    }
}

/// The codes that stand for 0.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ZeroPoints<'a> {
    /// [`largest`] in every group.
    Middle,
    /// An f16 a group, for codes of up to 8 bits.
    Each(&'a [[u8; 2]]),
}

impl ZeroPoints<'_> {
    /// Those of the first `groups` groups, and the rest.
    pub(crate) fn split_at(self, groups: usize) -> (Self, Self) {
        match self {
            Self::Middle => (self, self),
            Self::Each(zeros) => {
                let (first, rest) = zeros.split_at(groups);
                (Self::Each(first), Self::Each(rest))
            }
        }
    }
}

/// The inverse, on checked parameters: `y = (code - largest) * step + 0`, or `y = code * step - step * zero`, in which the
/// products are exact; then the message scale.
pub(crate) struct Decode<'a, E> {
    pub(crate) steps: &'a [[u8; 2]],
    pub(crate) zeros: ZeroPoints<'a>,
    pub(crate) codes: &'a [u8],
    pub(crate) group: usize,
    pub(crate) bits: u32,
    pub(crate) scale: MessageScale,
    pub(crate) out: &'a mut [E],
}

impl<E: Element> Kernel for Decode<'_, E> {
    type Output = ();

    fn portable(self) {
        portable::decode(self);
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let Some(factor) = self.scale.folded() else { return self.portable() };
        let (whole, rest) = self.split();
        simd::decode(simd, whole, factor);
        rest.portable();
    }
}

impl<E> Decode<'_, E> {
    /// The groups for vector kernels, and the rest.
    fn split(self) -> (Self, Self) {
        let groups = vector_groups(self.out.len(), self.group);
        let (out, last_out) = self.out.split_at_mut(groups * self.group);
        let (steps, last_steps) = self.steps.split_at(groups);
        let (zeros, last_zeros) = self.zeros.split_at(groups);
        let (codes, last_codes) = self.codes.split_at(bits::packed_len(out.len(), self.bits));
        let Self { group, bits, scale, .. } = self;
        let rest = Self {
            steps: last_steps,
            zeros: last_zeros,
            codes: last_codes,
            group,
            bits,
            scale,
            out: last_out,
        };
        (Self { steps, zeros, codes, group, bits, scale, out }, rest)
    }
}

/// How many of the groups of `values` values are whole and make up a multiple of [`WHOLE`]; none of a length that vector
/// kernels are not made for.
fn vector_groups(values: usize, group: usize) -> usize {
    if !(group.is_multiple_of(WHOLE) || group.is_power_of_two() && group >= 8) {
        return 0;
    }
    let vectors = group.max(WHOLE);
    values / vectors * (vectors / group)
}

/// The largest code before it is moved into the positive.
fn largest(bits: u32) -> u16 {
    (1 << (bits - 1)) - 1
}
