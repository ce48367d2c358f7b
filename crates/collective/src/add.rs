#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use pulp::{Simd, WithSimd};

/// `sum += addend`, value by value.
pub(crate) struct Add<'a> {
    pub(crate) sum: &'a mut [f32],
    pub(crate) addend: &'a [f32],
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (sum, addend) in self.sum.iter_mut().zip(self.addend) {
            *sum += addend;
        }
    }
}
