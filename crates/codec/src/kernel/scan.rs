//! The largest magnitude of a tensor, and whether all of it is finite, in one pass.
//!
//! Without its sign bit, the bit pattern of a float orders like its magnitude, infinity above every finite value
//! and NaN above infinity. So the maximum is an integer one, independent of the order.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod portable;

pub(crate) use portable::{max, max_abs_16, max_abs_f32, min, range};

use super::{Kernel, LANES};
use crate::element::Element;
use crate::simd::{Combine, Simd};

/// Independent maxima, so that none waits for the one before.
const CHAINS: usize = 4;

/// `max |x|` by bit pattern: 0 for an empty slice, infinite or NaN if any value is.
pub(crate) struct MaxAbs<'a, E>(pub(crate) &'a [E]);

impl<E: Element> Kernel for MaxAbs<'_, E> {
    type Output = f32;

    fn portable(self) -> f32 {
        E::max_abs(self.0)
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) -> f32 {
        let (chunks, rest) = self.0.as_chunks::<{ CHAINS * LANES }>();
        let mut max = [simd.splat(0.0); CHAINS];
        for chunk in chunks {
            for (max, x) in max.iter_mut().zip(chunk.as_chunks().0) {
                *max = simd.max_magnitude(*max, E::load(simd, x));
            }
        }
        let max = simd.max_magnitude(simd.max_magnitude(max[0], max[1]), simd.max_magnitude(max[2], max[3]));
        let mut lanes = [0.0; LANES];
        simd.store(max, &mut lanes);
        max_abs_f32(&[max_abs_f32(&lanes), E::max_abs(rest)])
    }
}

/// Minimum and maximum of two runs of values.
pub(crate) struct Range;

impl Combine<2> for Range {
    #[inline(always)]
    fn combine<S: Simd>(simd: S, a: [S::Floats; 2], b: [S::Floats; 2]) -> [S::Floats; 2] {
        [simd.min(a[0], b[0]), simd.max(a[1], b[1])]
    }
}
