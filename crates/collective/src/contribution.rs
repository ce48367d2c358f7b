use std::ops::Range;

use crate::Value;

/// What a rank adds to the sum, computed piece by piece, each as the first stage of the pipeline comes to it.
pub trait Contribution {
    /// Values of the whole tensor.
    fn values(&self) -> usize;

    /// The values of `range`, in `scratch`, which has as many, or wherever they lie already.
    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32];
}

impl<V: Value> Contribution for [V] {
    fn values(&self) -> usize {
        self.len()
    }

    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32] {
        V::widen(&self[range], scratch)
    }
}
