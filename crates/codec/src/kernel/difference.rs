//! Differences to remembered values, and back.
//!
//! Remembered values `m` are little-endian bytes in the number format `K`. Either kernel gives the largest magnitude among
//! them, which is not finite if any is not; what it has computed is of no use then.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use std::marker::PhantomData;

use super::{Kernel, LANES, scan};
use crate::element::Element;
use crate::simd::Simd;

/// Values converted at once, on the stack.
const PIECE: usize = 256;

/// `out = x - m`; the largest finite value replaces an infinity.
pub(crate) struct Subtract<'a, E, K> {
    /// Finite.
    pub(crate) x: &'a [E],
    /// As many values.
    pub(crate) m: &'a [u8],
    pub(crate) format: PhantomData<K>,
    /// As many values.
    pub(crate) out: &'a mut [f32],
}

impl<E: Element, K: Element> Subtract<'_, E, K> {
    /// Calls `piece` with values of `x`, as many of `m`, and where the differences go.
    #[inline(always)]
    fn pieces(self, mut piece: impl FnMut(&[E], &[K], &mut [f32])) {
        let mut m = [K::default(); PIECE];
        let bytes = self.m.chunks(PIECE * K::DTYPE.size());
        for ((x, bytes), out) in self.x.chunks(PIECE).zip(bytes).zip(self.out.chunks_mut(PIECE)) {
            let m = &mut m[..x.len()];
            K::read(bytes, m);
            piece(x, m, out);
        }
    }
}

impl<E: Element, K: Element> Kernel for Subtract<'_, E, K> {
    type Output = f32;

    fn portable(self) -> f32 {
        let mut max = 0.0;
        self.pieces(|x, m, out| max = subtract(max, x, m, out));
        max
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) -> f32 {
        let (mut lanes, mut last) = (simd.splat(0.0), 0.0);
        self.pieces(
            #[inline(always)]
            |x, m, out| {
                let ((xs, x), (ms, m)) = (x.as_chunks::<LANES>(), m.as_chunks::<LANES>());
                let (outs, out) = out.as_chunks_mut::<LANES>();
                for ((x, m), out) in xs.iter().zip(ms).zip(outs) {
                    let m = K::load(simd, m);
                    lanes = simd.max_magnitude(lanes, m);
                    simd.store(finite(simd, simd.sub(E::load(simd, x), m)), out);
                }
                last = subtract(last, x, m, out);
            },
        );
        largest(simd, lanes, last)
    }
}

/// The larger of `max` and what is in `m`.
fn subtract<E: Element, K: Element>(max: f32, x: &[E], m: &[K], out: &mut [f32]) -> f32 {
    for ((x, m), out) in x.iter().zip(m).zip(out) {
        *out = (x.to_f32() - m.to_f32()).clamp(f32::MIN, f32::MAX);
    }
    scan::max_abs_f32(&[max, K::max_abs(m)])
}

/// `values = m + values`; the largest finite value replaces an infinity. Then `m` is `values`, rounded half to even.
pub(crate) struct Add<'a, K> {
    pub(crate) m: &'a mut [u8],
    pub(crate) format: PhantomData<K>,
    /// As many values, finite.
    pub(crate) values: &'a mut [f32],
}

impl<K: Element> Add<'_, K> {
    /// Calls `piece` with values of `m` and as many to be added to them; stores what it has made of both.
    #[inline(always)]
    fn pieces(self, mut piece: impl FnMut(&mut [K], &mut [f32])) {
        let mut m = [K::default(); PIECE];
        for (bytes, values) in self.m.chunks_mut(PIECE * K::DTYPE.size()).zip(self.values.chunks_mut(PIECE)) {
            let m = &mut m[..values.len()];
            K::read(bytes, m);
            piece(m, values);
            K::write(m, bytes);
        }
    }
}

impl<K: Element> Kernel for Add<'_, K> {
    type Output = f32;

    fn portable(self) -> f32 {
        let mut max = 0.0;
        self.pieces(|m, values| max = add(max, m, values));
        max
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) -> f32 {
        let (mut lanes, mut last) = (simd.splat(0.0), 0.0);
        self.pieces(
            #[inline(always)]
            |m, values| {
                let (ms, m) = m.as_chunks_mut::<LANES>();
                let (chunks, values) = values.as_chunks_mut::<LANES>();
                for (m, value) in ms.iter_mut().zip(chunks) {
                    let remembered = K::load(simd, m);
                    lanes = simd.max_magnitude(lanes, remembered);
                    let sum = finite(simd, simd.add(remembered, simd.load(value)));
                    simd.store(sum, value);
                    K::store(simd, sum, m);
                }
                last = add(last, m, values);
            },
        );
        largest(simd, lanes, last)
    }
}

/// The larger of `max` and what was in `m`.
fn add<K: Element>(max: f32, m: &mut [K], values: &mut [f32]) -> f32 {
    let max = scan::max_abs_f32(&[max, K::max_abs(m)]);
    for (m, value) in m.iter().zip(&mut *values) {
        *value = (m.to_f32() + *value).clamp(f32::MIN, f32::MAX);
    }
    K::narrow(values, m);
    max
}

/// The largest magnitude in `lanes` and `last`.
#[inline(always)]
fn largest<S: Simd>(simd: S, lanes: S::Floats, last: f32) -> f32 {
    let mut values = [0.0; LANES];
    simd.store(lanes, &mut values);
    scan::max_abs_f32(&[scan::max_abs_f32(&values), last])
}

#[inline(always)]
fn finite<S: Simd>(simd: S, v: S::Floats) -> S::Floats {
    simd.max(simd.min(v, simd.splat(f32::MAX)), simd.splat(f32::MIN))
}
