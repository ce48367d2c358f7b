#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::DType;
use crate::kernel::{LANES, scan};
use crate::simd::Simd;

/// A number format: conversions to and from the `f32` in which all arithmetic is done, and to and from bytes.
///
/// Two slices of one call have the same number of values.
pub(crate) trait Element: Copy + Default + Send + Sync + 'static {
    const DTYPE: DType;

    /// Exact conversion.
    fn to_f32(self) -> f32;

    /// Exact conversion.
    fn widen(values: &[Self], out: &mut [f32]);

    /// Rounds finite values half to even; what would become infinite becomes the largest finite value.
    fn narrow(values: &[f32], out: &mut [Self]);

    /// Exact conversion.
    fn load<S: Simd>(simd: S, values: &[Self; LANES]) -> S::Floats;

    /// As [`Element::narrow`], for infinities too.
    fn store<S: Simd>(simd: S, v: S::Floats, out: &mut [Self; LANES]);

    /// `max |x|`; NaN or infinite if any value is.
    fn max_abs(values: &[Self]) -> f32;

    /// From little-endian bytes.
    fn read(bytes: &[u8], out: &mut [Self]);

    /// To little-endian bytes.
    fn write(values: &[Self], out: &mut [u8]);
}

macro_rules! little_endian_bytes {
    () => {
        fn read(bytes: &[u8], out: &mut [Self]) {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = Self::from_le_bytes(*bytes);
            }
        }

        fn write(values: &[Self], out: &mut [u8]) {
            for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
                *out = value.to_le_bytes();
            }
        }
    };
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;

    fn to_f32(self) -> f32 {
        self
    }

    fn widen(values: &[Self], out: &mut [f32]) {
        out.copy_from_slice(values);
    }

    fn narrow(values: &[f32], out: &mut [Self]) {
        out.copy_from_slice(values);
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, values: &[Self; LANES]) -> S::Floats {
        simd.load(values)
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, v: S::Floats, out: &mut [Self; LANES]) {
        simd.store(v, out);
    }

    fn max_abs(values: &[Self]) -> f32 {
        scan::max_abs_f32(values)
    }

    little_endian_bytes!();
}

impl Element for f16 {
    const DTYPE: DType = DType::F16;

    fn to_f32(self) -> f32 {
        self.into()
    }

    fn widen(values: &[Self], out: &mut [f32]) {
        values.convert_to_f32_slice(out);
    }

    fn narrow(values: &[f32], out: &mut [Self]) {
        out.convert_from_f32_slice(values);
        // Inputs are finite, so an infinity can only be one that rounding made.
        for value in out {
            let bits = value.to_bits();
            let magnitude = (bits & 0x7fff).min(Self::MAX.to_bits());
            *value = Self::from_bits(bits & 0x8000 | magnitude);
        }
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, values: &[Self; LANES]) -> S::Floats {
        simd.load_f16(values)
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, v: S::Floats, out: &mut [Self; LANES]) {
        simd.store_f16(saturate(simd, v, Element::to_f32(Self::MAX)), out);
    }

    fn max_abs(values: &[Self]) -> f32 {
        Element::to_f32(Self::from_bits(scan::max_abs_16(values.reinterpret_cast())))
    }

    little_endian_bytes!();
}

impl Element for bf16 {
    const DTYPE: DType = DType::BF16;

    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    fn widen(values: &[Self], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = Element::to_f32(*value);
        }
    }

    fn narrow(values: &[f32], out: &mut [Self]) {
        for (out, value) in out.iter_mut().zip(values) {
            let bits = value.to_bits();
            let rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
            let magnitude = (rounded & 0x7fff).min(u32::from(Self::MAX.to_bits()));
            *out = Self::from_bits((bits >> 16 & 0x8000 | magnitude) as u16);
        }
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, values: &[Self; LANES]) -> S::Floats {
        simd.load_bf16(values)
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, v: S::Floats, out: &mut [Self; LANES]) {
        simd.store_bf16(saturate(simd, v, Element::to_f32(Self::MAX)), out);
    }

    fn max_abs(values: &[Self]) -> f32 {
        Element::to_f32(Self::from_bits(scan::max_abs_16(values.reinterpret_cast())))
    }

    little_endian_bytes!();
}

/// What lies beyond the largest finite value of a format would round to it or to infinity.
#[inline(always)]
fn saturate<S: Simd>(simd: S, v: S::Floats, largest: f32) -> S::Floats {
    simd.max(simd.min(v, simd.splat(largest)), simd.splat(-largest))
}
