//! The arithmetic. The loops are plain and compiled for each instruction set; nothing in them is a sum over values or may be fused,
//! so all give the same bits.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use pulp::{Arch, Simd, WithSimd};

use super::Coefficients;
use crate::Value;

/// Values that are widened at once.
const PIECE: usize = 2048;

/// Moving averages of a rank's share of the errors: `m1` and `m2`.
#[derive(Debug, Default)]
pub(super) struct Averages {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
}

impl Averages {
    pub(super) fn new(values: usize) -> Self {
        Self { first: vec![0.0; values], second: vec![0.0; values] }
    }

    pub(super) fn reset(&mut self) {
        self.first.fill(0.0);
        self.second.fill(0.0);
    }

    /// `out = x + c` for the values of a tensor from `start` on (equation 10).
    pub(super) fn correct<V: Value>(&self, of: Coefficients, x: &[V], start: usize, out: &mut [f32]) {
        let mut scratch = [0.0; PIECE];
        let averages = self.first[start..].chunks(PIECE).zip(self.second[start..].chunks(PIECE));
        for ((x, out), (first, second)) in x.chunks(PIECE).zip(out.chunks_mut(PIECE)).zip(averages) {
            Arch::new().dispatch(Correct { of, x: V::widen(x, &mut scratch), first, second, out });
        }
    }

    /// Takes in the residual of a call (equation 11).
    pub(super) fn learn<V: Value, W: Value>(&mut self, of: Coefficients, x: &[V], y: &[W], ranks: usize) {
        let (mut wide_x, mut wide_y) = ([0.0; PIECE], [0.0; PIECE]);
        let averages = self.first.chunks_mut(PIECE).zip(self.second.chunks_mut(PIECE));
        for ((x, y), (first, second)) in x.chunks(PIECE).zip(y.chunks(PIECE)).zip(averages) {
            let (x, y) = (V::widen(x, &mut wide_x), W::widen(y, &mut wide_y));
            Arch::new().dispatch(Learn { of, x, y, ranks: ranks as f32, first, second });
        }
    }
}

impl Coefficients {
    /// The correction of one value whose averages these are.
    #[inline(always)]
    fn correction(self, first: f32, second: f32) -> f32 {
        self.gain * (self.blend * first + (1.0 - self.blend) * second)
    }
}

struct Correct<'a> {
    of: Coefficients,
    x: &'a [f32],
    first: &'a [f32],
    second: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Correct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (((out, x), first), second) in self.out.iter_mut().zip(self.x).zip(self.first).zip(self.second) {
            *out = x + self.of.correction(*first, *second);
        }
    }
}

struct Learn<'a> {
    of: Coefficients,
    x: &'a [f32],
    y: &'a [f32],
    ranks: f32,
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl WithSimd for Learn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let of = self.of;
        for (((first, second), x), y) in self.first.iter_mut().zip(self.second).zip(self.x).zip(self.y) {
            let residual = x + of.correction(*first, *second) - y / self.ranks;
            *first = of.first_decay * *first + (1.0 - of.first_decay) * residual;
            *second = of.second_decay * *second + (1.0 - of.second_decay) * residual;
        }
    }
}
