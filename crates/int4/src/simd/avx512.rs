//! AVX-512 with integer dot products (VNNI): Intel from Cascade Lake, AMD from Zen 4.

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

/// Proof that the processor has AVX-512 F, BW, DQ, VL and VNNI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni"))
        .then_some(Self(()))
    }
}

/// Instructions on registers.
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: `self` is an `Avx512`, which `detect` alone makes where every feature is there; nothing else is
        // asked of the caller of an intrinsic on registers.
        unsafe { $call }
    };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
    kernel.run(simd)
}

impl Simd for Avx512 {
    type Floats = __m512;
    type Ints = __m512i;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        avx512!(run(self, kernel))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        avx512!(_mm512_set1_ps(value))
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> __m512 {
        // SAFETY: feature as above; 64 bytes are read, the array's size.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, out: &mut [f32; LANES]) {
        // SAFETY: feature as above; 64 bytes are written, the array's size.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_mul_ps(a, b))
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_div_ps(a, b))
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_min_ps(a, b))
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_max_ps(a, b))
    }

    #[inline(always)]
    fn abs(self, v: __m512) -> __m512 {
        avx512!(_mm512_abs_ps(v))
    }

    #[inline(always)]
    fn floor(self, v: __m512) -> __m512 {
        avx512!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(v))
    }

    #[inline(always)]
    fn round(self, v: __m512) -> __m512 {
        avx512!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v))
    }

    #[inline(always)]
    fn at_most(self, a: __m512, b: __m512) -> u16 {
        avx512!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b))
    }

    #[inline(always)]
    fn keep(self, v: __m512, lanes: u16) -> __m512 {
        avx512!(_mm512_maskz_mov_ps(lanes, v))
    }

    #[inline(always)]
    fn butterfly<const W: usize>(self, v: __m512) -> __m512 {
        // With the partner in every lane, a sum and a difference are each the partner plus or minus the lane.
        avx512!(match W {
            8 => {
                let partner = _mm512_shuffle_f32x4::<0b01_00_11_10>(v, v);
                _mm512_mask_sub_ps(_mm512_add_ps(partner, v), 0xff00, partner, v)
            }
            4 => {
                let partner = _mm512_shuffle_f32x4::<0b10_11_00_01>(v, v);
                _mm512_mask_sub_ps(_mm512_add_ps(partner, v), 0xf0f0, partner, v)
            }
            2 => {
                let partner = _mm512_permute_ps::<0b01_00_11_10>(v);
                _mm512_mask_sub_ps(_mm512_add_ps(partner, v), 0xcccc, partner, v)
            }
            _ => {
                let partner = _mm512_permute_ps::<0b10_11_00_01>(v);
                _mm512_mask_sub_ps(_mm512_add_ps(partner, v), 0xaaaa, partner, v)
            }
        })
    }

    #[inline(always)]
    fn pack(self, v: __m512) -> [u8; CODE_BYTES] {
        avx512!({
            let codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
            let nibbles = _mm_and_si128(codes, _mm_set1_epi8(15));
            // Low nibble plus 16 times the high one.
            let bytes = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x1001));
            _mm_cvtsi128_si64(_mm_cvtepi16_epi8(bytes)).to_le_bytes()
        })
    }

    #[inline(always)]
    fn unpack(self, bytes: [u8; CODE_BYTES]) -> __m512 {
        avx512!({
            let bytes = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(bytes)));
            // Each 64-bit lane holds one byte: its nibbles go to the tops of the two halves.
            let spread = _mm512_or_si512(_mm512_slli_epi64::<28>(bytes), _mm512_slli_epi64::<56>(bytes));
            _mm512_cvtepi32_ps(_mm512_srai_epi32::<28>(spread))
        })
    }

    #[inline(always)]
    fn to_bytes(self, v: __m512) -> [i8; LANES] {
        let mut bytes = [0_i8; LANES];
        // SAFETY: feature as above; 16 bytes are written, the array's size.
        unsafe {
            let codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), codes);
        }
        bytes
    }

    #[inline(always)]
    fn count_from(self, start: u32) -> __m512i {
        avx512!(_mm512_add_epi32(
            _mm512_set1_epi32(start.cast_signed()),
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        ))
    }

    #[inline(always)]
    fn xor(self, v: __m512i, value: u32) -> __m512i {
        avx512!(_mm512_xor_si512(v, _mm512_set1_epi32(value.cast_signed())))
    }

    #[inline(always)]
    fn multiply(self, v: __m512i, value: u32) -> __m512i {
        avx512!(_mm512_mullo_epi32(v, _mm512_set1_epi32(value.cast_signed())))
    }

    #[inline(always)]
    fn xor_shift<const BITS: i32>(self, v: __m512i) -> __m512i {
        // A shift by a register: `BITS` has the type that the other instruction sets ask for, this one asks for `u32`.
        avx512!(_mm512_xor_si512(v, _mm512_srl_epi32(v, _mm_cvtsi32_si128(BITS))))
    }

    #[inline(always)]
    fn to_unit(self, v: __m512i) -> __m512 {
        avx512!(_mm512_mul_ps(
            _mm512_cvtepi32_ps(_mm512_srli_epi32::<8>(v)),
            _mm512_set1_ps(1.0 / 16_777_216.0)
        ))
    }
}
