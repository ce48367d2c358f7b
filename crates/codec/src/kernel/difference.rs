//! Differences to remembered values, and back.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use super::{Kernel, LANES};
use crate::element::Element;
use crate::simd::Simd;

/// Values converted at once by the portable kernel, on the stack.
const PIECE: usize = 256;

/// `out = x - m`; the largest finite value replaces an infinity.
pub(crate) struct Subtract<'a, E> {
    /// Finite.
    pub(crate) x: &'a [E],
    /// As many values, finite.
    pub(crate) m: &'a [f32],
    /// As many values.
    pub(crate) out: &'a mut [f32],
}

impl<E: Element> Kernel for Subtract<'_, E> {
    type Output = ();

    fn portable(self) {
        let mut floats = [0.0; PIECE];
        let pieces = self.x.chunks(PIECE).zip(self.m.chunks(PIECE)).zip(self.out.chunks_mut(PIECE));
        for ((x, m), out) in pieces {
            let floats = &mut floats[..x.len()];
            E::widen(x, floats);
            for ((x, m), out) in floats.iter().zip(m).zip(out) {
                *out = (x - m).clamp(f32::MIN, f32::MAX);
            }
        }
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let (chunks, x) = self.x.as_chunks::<LANES>();
        let (ms, m) = self.m.as_chunks::<LANES>();
        let (outs, out) = self.out.as_chunks_mut::<LANES>();
        for ((x, m), out) in chunks.iter().zip(ms).zip(outs) {
            let difference = simd.sub(E::load(simd, x), simd.load(m));
            simd.store(finite(simd, difference), out);
        }
        Subtract { x, m, out }.portable();
    }
}

/// `values = m + values`; the largest finite value replaces an infinity.
pub(crate) struct Add<'a> {
    /// Finite.
    pub(crate) m: &'a [f32],
    /// As many values, finite.
    pub(crate) values: &'a mut [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    fn portable(self) {
        for (value, m) in self.values.iter_mut().zip(self.m) {
            *value = (m + *value).clamp(f32::MIN, f32::MAX);
        }
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let (ms, m) = self.m.as_chunks::<LANES>();
        let (chunks, values) = self.values.as_chunks_mut::<LANES>();
        for (value, m) in chunks.iter_mut().zip(ms) {
            let sum = simd.add(simd.load(m), simd.load(value));
            simd.store(finite(simd, sum), value);
        }
        Add { m, values }.portable();
    }
}

#[inline(always)]
fn finite<S: Simd>(simd: S, v: S::Floats) -> S::Floats {
    simd.max(simd.min(v, simd.splat(f32::MAX)), simd.splat(f32::MIN))
}
