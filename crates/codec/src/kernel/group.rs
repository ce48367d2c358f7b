//! Symmetric fixed point on groups of values.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod portable;
mod simd;

use super::{Kernel, WHOLE, bits};
use crate::element::Element;
use crate::scale::{Factors, MessageScale};
use crate::simd::Simd;

/// Codes of more bits than a byte holds are packed by other operations.
const BYTE: u32 = 8;

/// Quantizes groups, the last one maybe shorter. With `y` the scaled values of one and `largest = 2^(bits - 1) - 1`:
///
/// 1. `step` is the smallest f16 not below `max |y| / largest`; `r = 1 / step`, or 0 if `step` is 0.
/// 2. `code = round_half_even(clamp(y * r, -largest, largest)) + largest`.
pub(crate) struct Encode<'a, E> {
    pub(crate) x: &'a [E],
    /// Values of a group.
    pub(crate) group: usize,
    /// Bits of a code.
    pub(crate) bits: u32,
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
        let Self { group, bits, scale, .. } = self;
        let whole = Self { x, group, bits, scale, steps, codes };
        (whole, Self { x: last_x, group, bits, scale, steps: last_steps, codes: last_codes })
    }
}

/// The inverse, on checked steps: `y = (code - largest) * step + 0`, then the message scale.
pub(crate) struct Decode<'a, E> {
    pub(crate) steps: &'a [[u8; 2]],
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
        let (codes, last_codes) = self.codes.split_at(bits::packed_len(out.len(), self.bits));
        let Self { group, bits, scale, .. } = self;
        let whole = Self { steps, codes, group, bits, scale, out };
        (whole, Self { steps: last_steps, codes: last_codes, group, bits, scale, out: last_out })
    }
}

/// How many of the groups of `values` values are whole and make up a multiple of [`WHOLE`].
fn vector_groups(values: usize, group: usize) -> usize {
    let vectors = group.max(WHOLE);
    values / vectors * (vectors / group)
}

/// The largest code before it is moved into the positive.
fn largest(bits: u32) -> u16 {
    (1 << (bits - 1)) - 1
}
