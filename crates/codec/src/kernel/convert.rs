//! From the number format of a tensor to that of the wire and back.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use super::{Kernel, LANES};
use crate::element::Element;
use crate::scale::Factors;
use crate::simd::Simd;

/// Values converted at once by the portable kernel, on the stack.
const PIECE: usize = 256;

/// `out = x * scale`, rounded half to even; the largest finite value replaces an infinity.
pub(crate) struct Convert<'a, From, To> {
    /// Finite.
    pub(crate) x: &'a [From],
    pub(crate) scale: Factors,
    /// As many values.
    pub(crate) out: &'a mut [To],
}

impl<From: Element, To: Element> Kernel for Convert<'_, From, To> {
    type Output = ();

    fn portable(self) {
        let mut floats = [0.0; PIECE];
        for (x, out) in self.x.chunks(PIECE).zip(self.out.chunks_mut(PIECE)) {
            let floats = &mut floats[..x.len()];
            From::widen(x, floats);
            for value in floats.iter_mut() {
                *value = self.scale.apply(*value).clamp(f32::MIN, f32::MAX);
            }
            To::narrow(floats, out);
        }
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        let (outs, rest_out) = self.out.as_chunks_mut::<LANES>();
        let [first, second] = [simd.splat(self.scale.0[0]), simd.splat(self.scale.0[1])];
        let (low, high) = (simd.splat(f32::MIN), simd.splat(f32::MAX));
        for (x, out) in chunks.iter().zip(outs) {
            let v = simd.mul(simd.mul(From::load(simd, x), first), second);
            To::store(simd, simd.max(simd.min(v, high), low), out);
        }
        Convert { x: rest, scale: self.scale, out: rest_out }.portable();
    }
}
