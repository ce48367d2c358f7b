//! AVX-512 with byte shuffles (VBMI): Intel from Ice Lake, AMD from Zen 4.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]
#![expect(clippy::unused_self, reason = "`self` is the proof that the instructions are there")]
#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its instructions"
)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::layout::{JOIN, LANES_TO_STREAM, STREAM_TO_LANES, padded, wide};
use super::{PACK_ROOM, Simd, WIDE_ROOM};
use crate::kernel::{Kernel, LANES};

/// Proof that the processor has AVX-512 F, BW, DQ, VL and VBMI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi"))
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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn run<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
    kernel.simd(simd)
}

impl Simd for Avx512 {
    type Floats = __m512;
    type Codes = __m512i;

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
    fn load_f16(self, values: &[f16; LANES]) -> __m512 {
        // SAFETY: feature as above; 32 bytes are read, the array's size.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(values.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store_f16(self, v: __m512, out: &mut [f16; LANES]) {
        // SAFETY: feature as above; 32 bytes are written, the array's size.
        unsafe {
            let bits = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
            _mm256_storeu_si256(out.as_mut_ptr().cast(), bits);
        }
    }

    #[inline(always)]
    fn load_bf16(self, values: &[bf16; LANES]) -> __m512 {
        // SAFETY: feature as above; 32 bytes are read, the array's size.
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(values.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
        }
    }

    #[inline(always)]
    fn store_bf16(self, v: __m512, out: &mut [bf16; LANES]) {
        // SAFETY: feature as above; 32 bytes are written, the array's size.
        unsafe {
            let bits = _mm512_castps_si512(v);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            let upper = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(rounded));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), upper);
        }
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
    fn max_magnitude(self, max: __m512, v: __m512) -> __m512 {
        avx512!({
            let (max, v) = (_mm512_castps_si512(max), _mm512_castps_si512(_mm512_abs_ps(v)));
            _mm512_castsi512_ps(_mm512_max_epi32(max, v))
        })
    }

    #[inline(always)]
    fn equal(self, a: __m512, b: __m512) -> u16 {
        avx512!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b))
    }

    #[inline(always)]
    fn greater(self, a: __m512, b: __m512) -> u16 {
        avx512!(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b))
    }

    #[inline(always)]
    fn replace(self, v: __m512, lanes: u16, value: f32) -> __m512 {
        avx512!(_mm512_mask_blend_ps(lanes, v, _mm512_set1_ps(value)))
    }

    #[inline(always)]
    fn exponent(self, v: __m512) -> __m512 {
        avx512!(_mm512_getexp_ps(v))
    }

    #[inline(always)]
    fn mantissa(self, v: __m512) -> __m512 {
        avx512!(_mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_ZERO>(v))
    }

    #[inline(always)]
    fn halves<const W: usize>(self, a: __m512, b: __m512) -> (__m512, __m512) {
        avx512!(match W {
            8 => (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b)),
            4 => (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b)),
            2 => (_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xee>(a, b)),
            _ => (_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b)),
        })
    }

    #[inline(always)]
    fn butterfly(self, v: __m512) -> __m512 {
        /// The sum in lanes whose partner is behind them, the difference in the others, which are marked.
        macro_rules! stride {
            ($v:expr, $marked:literal, $swap:expr) => {{
                let (v, swapped) = ($v, $swap);
                let signs = _mm512_mask_blend_ps($marked, _mm512_set1_ps(1.0), _mm512_set1_ps(-1.0));
                _mm512_fmadd_ps(v, signs, swapped)
            }};
        }
        avx512!({
            let v = stride!(v, 0xff00, _mm512_shuffle_f32x4::<0x4e>(v, v));
            let v = stride!(v, 0xf0f0, _mm512_shuffle_f32x4::<0xb1>(v, v));
            let v = stride!(v, 0xcccc, _mm512_permute_ps::<0x4e>(v));
            stride!(v, 0xaaaa, _mm512_permute_ps::<0xb1>(v))
        })
    }

    #[inline(always)]
    fn round_to_codes(self, v: [__m512; 4], offset: i32) -> __m512i {
        avx512!({
            let mut integers = [_mm512_setzero_si512(); 4];
            for (integers, v) in integers.iter_mut().zip(v) {
                *integers = _mm512_cvtps_epi32(v);
            }
            let [a, b, c, d] = integers;
            let (low, high) = (_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            let bytes = if offset == 0 {
                _mm512_packus_epi16(low, high)
            } else {
                _mm512_add_epi8(_mm512_packs_epi16(low, high), _mm512_set1_epi8(offset as i8))
            };
            // Packing went through each 128-bit lane on its own: four codes of `a`, of `b`, of `c`, of `d`.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, bytes)
        })
    }

    #[inline(always)]
    fn clamp_codes(self, width: u32, codes: __m512i) -> __m512i {
        avx512!(_mm512_min_epu8(codes, _mm512_set1_epi64(JOIN[width as usize].largest)))
    }

    #[inline(always)]
    fn codes_to_floats(self, codes: __m512i) -> [__m512; 4] {
        avx512!([
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<0>(codes))),
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<1>(codes))),
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<2>(codes))),
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<3>(codes))),
        ])
    }

    #[inline(always)]
    fn pack(self, width: u32, codes: __m512i, out: &mut [u8]) {
        let len = 8 * width as usize;
        let stream = avx512!({
            // Codes join to pairs, pairs to fours, fours to eights.
            let join = &JOIN[width as usize];
            let pairs = _mm512_maddubs_epi16(_mm512_set1_epi64(join.pairs), codes);
            let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi64(join.fours));
            let low = _mm512_and_si512(fours, _mm512_set1_epi64(0xffff_ffff));
            let high = _mm512_sllv_epi64(_mm512_srli_epi64::<32>(fours), _mm512_set1_epi64(join.shift));
            let eights = if width == 8 { codes } else { _mm512_or_si512(low, high) };
            _mm512_permutexvar_epi8(self.table(&LANES_TO_STREAM[width as usize]), eights)
        });
        if width <= LOOKUP_WIDTH
            && let Some(room) = out.first_chunk_mut::<32>()
        {
            // SAFETY: `self` proves the feature; 32 bytes are written, the array's size.
            unsafe { _mm256_storeu_si256(room.as_mut_ptr().cast(), _mm512_castsi512_si256(stream)) }
        } else if let Some(room) = out.first_chunk_mut::<PACK_ROOM>() {
            self.store_bytes(stream, room);
        } else {
            let mut bytes = [0; PACK_ROOM];
            self.store_bytes(stream, &mut bytes);
            out[..len].copy_from_slice(&bytes[..len]);
        }
    }

    #[inline(always)]
    fn unpack(self, width: u32, bytes: &[u8]) -> __m512i {
        let stream = match bytes.first_chunk::<PACK_ROOM>() {
            Some(room) => self.table(room),
            None => self.table(&padded(&bytes[..8 * width as usize])),
        };
        avx512!({
            let eights = _mm512_permutexvar_epi8(self.table(&STREAM_TO_LANES[width as usize]), stream);
            // Byte `i` of a lane becomes the 8 bits from bit `i * width` on.
            let starts = i64::from(width) * 0x0706_0504_0302_0100;
            let codes = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(starts), eights);
            _mm512_and_si512(codes, _mm512_set1_epi64(JOIN[width as usize].largest))
        })
    }

    #[inline(always)]
    fn pack_wide(self, width: u32, v: [Self::Floats; 4], offset: i32, out: &mut [u8]) {
        let streams = self.wide_streams(width, v, offset);
        let len = 8 * width as usize;
        if let Some(room) = out.first_chunk_mut::<WIDE_ROOM>() {
            self.store_wide_streams(width, streams, room);
        } else {
            let mut bytes = [0; WIDE_ROOM];
            self.store_wide_streams(width, streams, &mut bytes);
            out[..len].copy_from_slice(&bytes[..len]);
        }
    }

    #[inline(always)]
    fn unpack_wide(self, width: u32, bytes: &[u8]) -> [Self::Floats; 4] {
        match bytes.first_chunk::<WIDE_ROOM>() {
            Some(room) => self.unpack_wide_room(width, room),
            None => self.unpack_wide_room(width, &padded(&bytes[..8 * width as usize])),
        }
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        avx512!(_mm512_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn dequantize(self, width: u32, bytes: &[u8], step: __m512, zero: __m512) -> [__m512; 4] {
        if width <= LOOKUP_WIDTH {
            return match bytes.first_chunk() {
                Some(room) => self.look_up(width, room, step, zero),
                None => self.look_up(width, &padded(&bytes[..8 * width as usize]), step, zero),
            };
        }
        let mut values = self.codes_to_floats(self.unpack(width, bytes));
        for value in &mut values {
            *value = self.mul_add(*value, step, zero);
        }
        values
    }
}

/// Codes of up to this many bits choose one of sixteen lanes.
const LOOKUP_WIDTH: u32 = 4;

/// By width, the code that the lowest four bits of a lane begin with.
const LOOKUP_CODES: [[f32; LANES]; 5] = {
    let mut codes = [[0.0; LANES]; 5];
    let mut width = 1;
    while width <= 4 {
        let mut i = 0;
        while i < LANES {
            codes[width][i] = (i & ((1 << width) - 1)) as f32;
            i += 1;
        }
        width += 1;
    }
    codes
};

/// By width, where in the stream of sixteen codes each of them begins, in the lowest byte of its 32-bit lane.
const LOOKUP_STARTS: [[u32; LANES]; 5] = {
    let mut starts = [[0; LANES]; 5];
    let mut width = 1;
    while width <= 4 {
        let mut i = 0;
        while i < LANES {
            starts[width][i] = (width * i) as u32;
            i += 1;
        }
        width += 1;
    }
    starts
};

impl Avx512 {
    /// [`Simd::dequantize`] of codes of up to [`LOOKUP_WIDTH`] bits: all values that a tile can have are in one vector, and the
    /// low bits of each lane choose.
    #[inline(always)]
    fn look_up(self, width: u32, bytes: &[u8; 32], step: __m512, zero: __m512) -> [__m512; 4] {
        let codes = self.load(&LOOKUP_CODES[width as usize]);
        let mut values = [self.mul_add(codes, step, zero); 4];
        // SAFETY: `self` proves the feature; 64 bytes are read, the array's size.
        let starts = unsafe { _mm512_loadu_si512(LOOKUP_STARTS[width as usize].as_ptr().cast()) };
        for (i, values) in values.iter_mut().enumerate() {
            let stream: &[u8; 8] =
                bytes[i * 2 * width as usize..].first_chunk().expect("a width of at most 4");
            let stream = i64::from_le_bytes(*stream);
            *values = avx512!({
                let chosen = _mm512_multishift_epi64_epi8(starts, _mm512_set1_epi64(stream));
                _mm512_permutexvar_ps(chosen, *values)
            });
        }
        values
    }

    #[inline(always)]
    fn table(self, bytes: &[u8; PACK_ROOM]) -> __m512i {
        // SAFETY: `self` proves the feature; 64 bytes are read, the array's size.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_bytes(self, v: __m512i, out: &mut [u8; PACK_ROOM]) {
        // SAFETY: `self` proves the feature; 64 bytes are written, the array's size.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), v) }
    }

    /// Rounded floats with `offset` as streams of thirty-two codes.
    #[inline(always)]
    fn wide_streams(self, width: u32, v: [__m512; 4], offset: i32) -> [__m512i; 2] {
        let table = self.table(&wide(width).to_stream);
        let mut streams = [avx512!(_mm512_setzero_si512()); 2];
        for (stream, v) in streams.iter_mut().zip(v.as_chunks::<2>().0) {
            *stream = avx512!({
                let offset = _mm512_set1_epi32(offset);
                let low = _mm512_add_epi32(_mm512_cvtps_epi32(v[0]), offset);
                let high = _mm512_add_epi32(_mm512_cvtps_epi32(v[1]), offset);
                // Packing goes through each 128-bit lane on its own.
                let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
                let codes = _mm512_permutexvar_epi64(order, _mm512_packus_epi32(low, high));
                // Codes join to pairs, pairs to fours, fours to eights.
                let pairs = self.join(codes, width, 16, 0x0000_0001_0000_0001);
                let fours = self.join(pairs, 2 * width, 32, 1);
                let bits = i64::from(4 * width);
                let counts = _mm512_maskz_set1_epi64(0b1010_1010, 64 - bits);
                let low = _mm512_srlv_epi64(fours, counts);
                let high = _mm512_sllv_epi64(_mm512_bsrli_epi128::<8>(fours), _mm512_set1_epi64(bits));
                _mm512_permutexvar_epi8(table, _mm512_or_si512(low, high))
            });
        }
        streams
    }

    /// In each of the lanes that `ones` marks, twice `lane` bits wide, moves the upper half down to bit `bits`.
    #[inline(always)]
    fn join(self, v: __m512i, bits: u32, lane: u32, ones: i64) -> __m512i {
        avx512!({
            let low = _mm512_set1_epi64(((1 << lane) - 1) * ones);
            let high = _mm512_andnot_si512(low, v);
            let moved = _mm512_srlv_epi64(high, _mm512_set1_epi64(i64::from(lane - bits)));
            _mm512_or_si512(_mm512_and_si512(v, low), moved)
        })
    }

    /// Stores one behind the other, what is behind the first under the second.
    #[inline(always)]
    fn store_wide_streams(self, width: u32, [first, second]: [__m512i; 2], out: &mut [u8; WIDE_ROOM]) {
        self.store_bytes(first, out.first_chunk_mut().expect("128 bytes"));
        let behind = &mut out[4 * width as usize..];
        self.store_bytes(second, behind.first_chunk_mut().expect("a width of at most 16"));
    }

    #[inline(always)]
    fn unpack_wide_room(self, width: u32, bytes: &[u8; WIDE_ROOM]) -> [__m512; 4] {
        let wide = wide(width);
        let table = self.table(&wide.to_lanes);
        // SAFETY: `self` proves the feature; 64 bytes are read, the array's size.
        let shifts = unsafe { _mm512_loadu_si512(wide.shifts.as_ptr().cast()) };
        let mut floats = [self.splat(0.0); 4];
        for (i, floats) in floats.iter_mut().enumerate() {
            let stream: &[u8; 32] =
                bytes[2 * i * width as usize..].first_chunk().expect("a width of at most 16");
            // SAFETY: `self` proves the feature; 32 bytes are read, the array's size.
            let stream = unsafe { _mm512_zextsi256_si512(_mm256_loadu_si256(stream.as_ptr().cast())) };
            *floats = avx512!({
                let codes = _mm512_srlv_epi32(_mm512_permutexvar_epi8(table, stream), shifts);
                _mm512_cvtepi32_ps(_mm512_and_si512(codes, _mm512_set1_epi32((1 << width) - 1)))
            });
        }
        floats
    }
}
