//! The arithmetic. The loops are plain and compiled for each instruction set; nothing in them is a sum over values or may be fused,
//! so all give the same bits.
//!
//! A call needs the correction alone, on the critical path, and memory is what it takes time for. So of the two averages the state
//! has the first one and, in place of the second, the correction `c = eta (a m1 + (1 - a) m2)`, which equation 11 makes
//! `b2 c + eta a (b1 - b2) m1 + eta (a (1 - b1) + (1 - a) (1 - b2)) u` in the next call.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use pulp::{Arch, Simd, WithSimd};

use super::Coefficients;
use crate::Value;

/// Values that are widened at once.
const PIECE: usize = 2048;

/// What a rank remembers of its share of the errors.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    /// `m1`.
    pub(super) first: Vec<f32>,
    /// `c`.
    pub(super) correction: Vec<f32>,
}

impl Feedback {
    pub(super) fn new(values: usize) -> Self {
        Self { first: vec![0.0; values], correction: vec![0.0; values] }
    }

    pub(super) fn reset(&mut self) {
        self.first.fill(0.0);
        self.correction.fill(0.0);
    }

    /// `out = x + c` for the values of a tensor from `start` on (equation 10).
    pub(super) fn correct<V: Value>(&self, x: &[V], start: usize, out: &mut [f32]) {
        let mut scratch = [0.0; PIECE];
        let corrections = self.correction[start..].chunks(PIECE);
        for ((x, out), correction) in x.chunks(PIECE).zip(out.chunks_mut(PIECE)).zip(corrections) {
            Arch::new().dispatch(Correct { x: V::widen(x, &mut scratch), correction, out });
        }
    }

    /// Takes in the residual of a call (equation 11).
    pub(super) fn learn<V: Value, W: Value>(&mut self, of: Coefficients, x: &[V], y: &[W], ranks: usize) {
        let (mut wide_x, mut wide_y) = ([0.0; PIECE], [0.0; PIECE]);
        let (ranks, shares) = (ranks as f32, Shares::of(of));
        let state = self.first.chunks_mut(PIECE).zip(self.correction.chunks_mut(PIECE));
        for ((x, y), (first, correction)) in x.chunks(PIECE).zip(y.chunks(PIECE)).zip(state) {
            let (x, y) = (V::widen(x, &mut wide_x), W::widen(y, &mut wide_y));
            Arch::new().dispatch(Learn { of, shares, x, y, ranks, first, correction });
        }
    }
}

/// What the next correction has of the first average and of the residual.
#[derive(Debug, Clone, Copy)]
struct Shares {
    first: f32,
    residual: f32,
}

impl Shares {
    fn of(of: Coefficients) -> Self {
        let Coefficients { gain, blend, first_decay, second_decay } = of;
        let residual = blend * (1.0 - first_decay) + (1.0 - blend) * (1.0 - second_decay);
        Self { first: gain * blend * (first_decay - second_decay), residual: gain * residual }
    }
}

struct Correct<'a> {
    x: &'a [f32],
    correction: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Correct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((out, x), correction) in self.out.iter_mut().zip(self.x).zip(self.correction) {
            *out = x + correction;
        }
    }
}

struct Learn<'a> {
    of: Coefficients,
    shares: Shares,
    x: &'a [f32],
    y: &'a [f32],
    ranks: f32,
    first: &'a mut [f32],
    correction: &'a mut [f32],
}

impl WithSimd for Learn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { of, shares, ranks, .. } = self;
        for (((first, correction), x), y) in
            self.first.iter_mut().zip(self.correction).zip(self.x).zip(self.y)
        {
            let residual = x + *correction - y / ranks;
            *correction = of.second_decay * *correction + shares.first * *first + shares.residual * residual;
            *first = of.first_decay * *first + (1.0 - of.first_decay) * residual;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two averages by their definition, in f64.
    #[test]
    fn the_correction_is_that_of_two_averages() {
        for (gain, blend, first_decay, second_decay) in
            [(0.75, 0.35, 0.7, 0.3), (1.0, 1.0, 0.9, 0.2), (0.5, 0.0, 0.1, 0.8), (0.0, 0.4, 0.5, 0.5)]
        {
            let of = Coefficients { gain, blend, first_decay, second_decay };
            let mut feedback = Feedback::new(1);
            let [gain, blend, b1, b2] = [gain, blend, first_decay, second_decay].map(f64::from);
            let (mut m1, mut m2) = (0.0, 0.0);
            for call in 0..50 {
                let [x, y] = [0.7, 2.9].map(|factor| (f64::from(call) * factor).sin() as f32);
                let correction = gain * (blend * m1 + (1.0 - blend) * m2);
                let residual = f64::from(x) + correction - f64::from(y) / 3.0;
                (m1, m2) = (b1 * m1 + (1.0 - b1) * residual, b2 * m2 + (1.0 - b2) * residual);
                feedback.learn(of, &[x], &[y], 3);
                let expected = gain * (blend * m1 + (1.0 - blend) * m2);
                let off = (f64::from(feedback.correction[0]) - expected).abs();
                assert!(off < 1e-6, "call {call} of {of:?}: off by {off}");
            }
        }
    }
}
