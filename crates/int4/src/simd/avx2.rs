//! AVX2: Intel from Haswell, AMD from Zen. Sixteen lanes are two registers.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]
#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its instructions"
)]

use std::arch::x86_64::*;

use super::{CODE_BYTES, Kernel, LANES, Simd};

/// Proof that the processor has AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Instructions on registers.
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: `self` is an `Avx2`, which `detect` alone makes where the feature is there; nothing else is asked of
        // the caller of an intrinsic on registers.
        unsafe { $call }
    };
}

/// A call for each register of the arguments.
macro_rules! each {
    ($call:path, $a:expr) => {
        avx2!([$call($a[0]), $call($a[1])])
    };
    ($call:path, $a:expr, $b:expr) => {
        avx2!([$call($a[0], $b[0]), $call($a[1], $b[1])])
    };
}

/// An expression of each register. A closure would be a function of its own, compiled without the instructions.
macro_rules! map {
    ($v:expr, |$name:ident| $body:expr) => {
        avx2!([
            {
                let $name = $v[0];
                $body
            },
            {
                let $name = $v[1];
                $body
            }
        ])
    };
}

#[target_feature(enable = "avx2")]
fn run<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
    kernel.run(simd)
}

/// Sixteen integers as bytes.
#[target_feature(enable = "avx2")]
fn to_bytes(v: [__m256; 2]) -> __m128i {
    // Packing works on 128-bit halves: lanes 0-3 and 8-11, then 4-7 and 12-15.
    let words = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
    _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words))
}

impl Simd for Avx2 {
    type Floats = [__m256; 2];
    type Ints = [__m256i; 2];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        avx2!(run(self, kernel))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [__m256; 2] {
        avx2!([_mm256_set1_ps(value); 2])
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [__m256; 2] {
        // SAFETY: feature as above; 32 bytes are read from each half of the array's 64.
        unsafe { [_mm256_loadu_ps(values.as_ptr()), _mm256_loadu_ps(values[8..].as_ptr())] }
    }

    #[inline(always)]
    fn store(self, v: [__m256; 2], out: &mut [f32; LANES]) {
        // SAFETY: feature as above; 32 bytes are written to each half of the array's 64.
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(out[8..].as_mut_ptr(), v[1]);
        }
    }

    #[inline(always)]
    fn add(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_add_ps, a, b)
    }

    #[inline(always)]
    fn sub(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_sub_ps, a, b)
    }

    #[inline(always)]
    fn mul(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_mul_ps, a, b)
    }

    #[inline(always)]
    fn div(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_div_ps, a, b)
    }

    #[inline(always)]
    fn min(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_min_ps, a, b)
    }

    #[inline(always)]
    fn max(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_max_ps, a, b)
    }

    #[inline(always)]
    fn abs(self, v: [__m256; 2]) -> [__m256; 2] {
        let sign = avx2!(_mm256_set1_ps(-0.0));
        avx2!([_mm256_andnot_ps(sign, v[0]), _mm256_andnot_ps(sign, v[1])])
    }

    #[inline(always)]
    fn floor(self, v: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_floor_ps, v)
    }

    #[inline(always)]
    fn round(self, v: [__m256; 2]) -> [__m256; 2] {
        each!(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>, v)
    }

    #[inline(always)]
    fn at_most(self, a: [__m256; 2], b: [__m256; 2]) -> u16 {
        let [low, high] = each!(_mm256_cmp_ps::<_CMP_LE_OQ>, a, b);
        avx2!(_mm256_movemask_ps(low) as u16 | (_mm256_movemask_ps(high) as u16) << 8)
    }

    #[inline(always)]
    fn keep(self, v: [__m256; 2], lanes: u16) -> [__m256; 2] {
        let bit = avx2!(_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128));
        let set =
            map!([lanes, lanes >> 8], |lanes| _mm256_and_si256(_mm256_set1_epi32(i32::from(lanes)), bit));
        let masks = map!(set, |set| _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit)));
        each!(_mm256_and_ps, v, masks)
    }

    #[inline(always)]
    fn butterfly<const W: usize>(self, v: [__m256; 2]) -> [__m256; 2] {
        if W == 8 {
            return avx2!([_mm256_add_ps(v[0], v[1]), _mm256_sub_ps(v[0], v[1])]);
        }
        // With the partner in every lane, a sum and a difference are each the partner plus or minus the lane.
        let partner = match W {
            4 => map!(v, |v| _mm256_permute2f128_ps::<1>(v, v)),
            2 => each!(_mm256_permute_ps::<0b01_00_11_10>, v),
            _ => each!(_mm256_permute_ps::<0b10_11_00_01>, v),
        };
        let (sum, difference) = (self.add(partner, v), self.sub(partner, v));
        match W {
            4 => each!(_mm256_blend_ps::<0xf0>, sum, difference),
            2 => each!(_mm256_blend_ps::<0xcc>, sum, difference),
            _ => each!(_mm256_blend_ps::<0xaa>, sum, difference),
        }
    }

    #[inline(always)]
    fn pack(self, v: [__m256; 2]) -> [u8; CODE_BYTES] {
        avx2!({
            let nibbles = _mm_and_si128(to_bytes(v), _mm_set1_epi8(15));
            // Low nibble plus 16 times the high one.
            let bytes = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x1001));
            _mm_cvtsi128_si64(_mm_packus_epi16(bytes, bytes)).to_le_bytes()
        })
    }

    #[inline(always)]
    fn to_bytes(self, v: [__m256; 2]) -> [i8; LANES] {
        let mut bytes = [0_i8; LANES];
        // SAFETY: feature as above; 16 bytes are written, the array's size.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), to_bytes(v)) }
        bytes
    }

    #[inline(always)]
    fn unpack(self, bytes: [u8; CODE_BYTES]) -> [__m256; 2] {
        let bytes = avx2!(_mm_cvtsi64_si128(i64::from_le_bytes(bytes)));
        let bytes = avx2!([_mm256_cvtepu8_epi64(bytes), _mm256_cvtepu8_epi64(_mm_srli_si128::<4>(bytes))]);
        // Each 64-bit lane holds one byte: its nibbles go to the tops of the two halves.
        let spread = map!(bytes, |bytes| _mm256_or_si256(
            _mm256_slli_epi64::<28>(bytes),
            _mm256_slli_epi64::<56>(bytes)
        ));
        map!(spread, |spread| _mm256_cvtepi32_ps(_mm256_srai_epi32::<28>(spread)))
    }

    #[inline(always)]
    fn count_from(self, start: u32) -> [__m256i; 2] {
        avx2!({
            let start = _mm256_set1_epi32(start.cast_signed());
            [
                _mm256_add_epi32(start, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                _mm256_add_epi32(start, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)),
            ]
        })
    }

    #[inline(always)]
    fn xor(self, v: [__m256i; 2], value: u32) -> [__m256i; 2] {
        let value = avx2!(_mm256_set1_epi32(value.cast_signed()));
        each!(_mm256_xor_si256, v, [value; 2])
    }

    #[inline(always)]
    fn multiply(self, v: [__m256i; 2], value: u32) -> [__m256i; 2] {
        let value = avx2!(_mm256_set1_epi32(value.cast_signed()));
        each!(_mm256_mullo_epi32, v, [value; 2])
    }

    #[inline(always)]
    fn xor_shift<const BITS: i32>(self, v: [__m256i; 2]) -> [__m256i; 2] {
        let shifted = each!(_mm256_srli_epi32::<BITS>, v);
        each!(_mm256_xor_si256, v, shifted)
    }

    #[inline(always)]
    fn to_unit(self, v: [__m256i; 2]) -> [__m256; 2] {
        let numbers = each!(_mm256_srli_epi32::<8>, v);
        let numbers = each!(_mm256_cvtepi32_ps, numbers);
        let unit = avx2!(_mm256_set1_ps(1.0 / 16_777_216.0));
        each!(_mm256_mul_ps, numbers, [unit; 2])
    }
}
