use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use thinwire_codec::ValuesMut;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// A number format of tensors in memory: `f32`, `f16` or `bf16`. Sums are f32 whatever it is; a value that a sum does not fit in is
/// the largest finite one of its format.
pub trait Value: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The same values in f32: in `scratch`, which has room for as many, or where they lie already.
    fn widen<'a>(values: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32];

    /// As the codecs take them.
    fn view_mut(values: &mut [Self]) -> ValuesMut<'_>;
}

impl Value for f32 {
    fn widen<'a>(values: &'a [Self], _scratch: &'a mut [f32]) -> &'a [f32] {
        values
    }

    fn view_mut(values: &mut [Self]) -> ValuesMut<'_> {
        values.into()
    }
}

macro_rules! of_16_bits {
    ($format:ty) => {
        impl Value for $format {
            fn widen<'a>(values: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32] {
                let scratch = &mut scratch[..values.len()];
                values.convert_to_f32_slice(scratch);
                scratch
            }

            fn view_mut(values: &mut [Self]) -> ValuesMut<'_> {
                values.into()
            }
        }
    };
}

of_16_bits!(f16);
of_16_bits!(bf16);
