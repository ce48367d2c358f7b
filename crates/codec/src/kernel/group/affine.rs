//! The asymmetric quantizer on groups of values (Echo, section 4.3).

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod portable;
mod simd;

use super::{LEAST_STEP, vector_groups};
use crate::element::Element;
use crate::kernel::scan::{max, min};
use crate::kernel::{Kernel, bits};
use crate::scale::Factors;
use crate::simd::Simd;

/// The largest distance of a group from zero, in steps.
const FARTHEST: f32 = 32_768.0;

/// Adding and subtracting this rounds a float of magnitude below `2^22` to an integer, half to even.
const ROUNDER: f32 = 12_582_912.0; // 1.5 * 2^23

/// Where zero lies on the grid of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZeroPoint {
    /// Where the group's minimum puts it: the first code stands for that.
    Naive,
    /// On a code where the group has values of both signs or a zero, and as [`ZeroPoint::Naive`] where the group is more than
    /// half a step away from zero; between them, [`aware`] blends.
    Aware,
}

/// Quantizes groups, the last one maybe shorter. With `y` the scaled values of one, `low` and `high` its extrema and
/// `largest = 2^bits - 1`:
///
/// 1. `step = f16(`[`exact_step`]`)`, `zero = f16(p + 0)` with `p = -low / step` or [`aware`] of that, `r = 1 / step`.
/// 2. `code = round_half_even(clamp(y * r + zero, 0, largest))`.
pub(crate) struct Encode<'a, E> {
    pub(crate) x: &'a [E],
    /// Values of a group; its codes are whole bytes.
    pub(crate) group: usize,
    /// Bits of a code, up to 8.
    pub(crate) bits: u32,
    pub(crate) zero_point: ZeroPoint,
    pub(crate) scale: Factors,
    /// One a group.
    pub(crate) steps: &'a mut [[u8; 2]],
    /// One a group.
    pub(crate) zeros: &'a mut [[u8; 2]],
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
        let (zeros, last_zeros) = self.zeros.split_at_mut(groups);
        let (codes, last_codes) = self.codes.split_at_mut(bits::packed_len(x.len(), self.bits));
        let Self { group, bits, zero_point, scale, .. } = self;
        let whole = Self { x, group, bits, zero_point, scale, steps, zeros, codes };
        let (x, steps, zeros, codes) = (last_x, last_steps, last_zeros, last_codes);
        (whole, Self { x, group, bits, zero_point, scale, steps, zeros, codes })
    }
}

/// The largest code.
fn largest(bits: u32) -> f32 {
    ((1_u32 << bits) - 1) as f32
}

/// The extent in steps of the largest code. A group far from zero for its extent gets a wider one, since its zero point must be
/// an f16.
#[inline(always)]
fn exact_step(low: f32, high: f32, largest: f32) -> f32 {
    let farthest = max(high, -low);
    max(max((high - low) / largest, farthest / FARTHEST), LEAST_STEP)
}

/// The zero-aware zero point, given the naive one.
///
/// With `n` the nearest code, `d` the distance to it and `w(t) = t^2 (3 - 2 t)`, it is `n + w(2 d) (naive - n)` for a group on
/// one side of zero that is up to half a step away, a smooth function of the group's place: `n` where it touches zero, with
/// slope 0, and the naive one from half a step on, with slope 1.
#[inline(always)]
fn aware(naive: f32, low: f32, high: f32, largest: f32) -> f32 {
    let nearest = min(max((naive + ROUNDER) - ROUNDER, 0.0), largest);
    let beyond = naive - nearest;
    let t = min(2.0 * beyond.abs(), 1.0);
    let one_sided = low > 0.0 || high < 0.0;
    let back = if one_sided { 1.0 - t * t * (3.0 - 2.0 * t) } else { 1.0 };
    naive - back * beyond
}

impl ZeroPoint {
    /// Before it is rounded to f16, of a group with this `step`. The sum with 0 turns a `-0` into `+0`.
    #[inline(always)]
    fn of(self, low: f32, high: f32, step: f32, largest: f32) -> f32 {
        let naive = -low / step;
        let zero = match self {
            Self::Naive => naive,
            Self::Aware => aware(naive, low, high, largest),
        };
        zero + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The zero point of a group of extent 15 steps of 1 that begins at `low`.
    fn at(low: f32) -> f32 {
        ZeroPoint::Aware.of(low, low + 15.0, 1.0, 15.0)
    }

    #[test]
    fn a_group_around_zero_has_a_code_for_it() {
        for i in 0..=1500 {
            let low = i as f32 / -100.0;
            assert_eq!(at(low), (-low).round_ties_even(), "{low}");
        }
        // Though the step was rounded so far down that the naive zero point is no code.
        assert_eq!(ZeroPoint::Aware.of(-22.0, 0.0, 1.0, 15.0), 15.0);
    }

    #[test]
    fn a_group_away_from_zero_has_the_naive_one() {
        for i in 50..4000 {
            let away = i as f32 / 100.0;
            assert_eq!(at(away), -away);
            assert_eq!(at(-15.0 - away), 15.0 + away);
        }
    }

    /// By the slope of `x + w(2 x) x`, which is at most 2 for `x` up to a half, and the f32 rounding near 16.
    #[test]
    fn between_them_it_is_continuous_and_monotonic() {
        const STEP: f32 = 1e-4;
        let mut last = [at(-0.1), at(-14.9)];
        for i in 0..8000 {
            let away = i as f32 * STEP - 0.1;
            let now = [at(away), at(-15.0 - away)];
            let moved = [last[0] - now[0], now[1] - last[1]];
            assert!(
                moved.iter().all(|moved| (-2e-6..=2.0 * STEP + 2e-6).contains(moved)),
                "{away}: {moved:?}"
            );
            last = now;
        }
        assert!((at(0.25) + 0.25 * 0.5).abs() < 1e-6, "half of the way, half of it");
        assert!((at(0.05) + 0.05 * 0.028).abs() < 1e-6, "near zero, hardly any of it");
    }
}
