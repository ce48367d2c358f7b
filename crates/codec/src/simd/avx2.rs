//! AVX2, FMA and F16C: Intel from Haswell, AMD from Zen. Sixteen lanes are two registers.

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

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c"))
        .then_some(Self(()))
    }
}

/// Instructions on registers.
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: `self` is an `Avx2`, which `detect` alone makes where every feature is there; nothing else is
        // asked of the caller of an intrinsic on registers.
        unsafe { $call }
    };
}

#[target_feature(enable = "avx2,fma,f16c")]
fn run<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
    kernel.simd(simd)
}

/// A call for each register of the arguments.
macro_rules! each {
    ($call:path, $a:expr) => {
        avx2!([$call($a[0]), $call($a[1])])
    };
    ($call:path, $a:expr, $b:expr) => {
        avx2!([$call($a[0], $b[0]), $call($a[1], $b[1])])
    };
    ($call:path, $a:expr, $b:expr, $c:expr) => {
        avx2!([$call($a[0], $b[0], $c[0]), $call($a[1], $b[1], $c[1])])
    };
}

impl Simd for Avx2 {
    type Floats = [__m256; 2];
    type Codes = [__m256i; 2];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        avx2!(run(self, kernel))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        [avx2!(_mm256_set1_ps(value)); 2]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Floats {
        let [low, high] = halves_of(values);
        // SAFETY: feature as above; each load reads 32 bytes, the size of its array.
        unsafe { [_mm256_loadu_ps(low.as_ptr()), _mm256_loadu_ps(high.as_ptr())] }
    }

    #[inline(always)]
    fn store(self, v: Self::Floats, out: &mut [f32; LANES]) {
        for (v, out) in v.into_iter().zip(out.as_chunks_mut::<8>().0) {
            // SAFETY: feature as above; 32 bytes are written, the array's size.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), v) }
        }
    }

    #[inline(always)]
    fn load_f16(self, values: &[f16; LANES]) -> Self::Floats {
        let [low, high] = halves_of(values);
        // SAFETY: feature as above; each load reads 16 bytes, the size of its array.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(high.as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    fn store_f16(self, v: Self::Floats, out: &mut [f16; LANES]) {
        for (v, out) in v.into_iter().zip(out.as_chunks_mut::<8>().0) {
            // SAFETY: feature as above; 16 bytes are written, the array's size.
            unsafe {
                let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
                _mm_storeu_si128(out.as_mut_ptr().cast(), bits);
            }
        }
    }

    #[inline(always)]
    fn load_bf16(self, values: &[bf16; LANES]) -> Self::Floats {
        let mut floats = self.splat(0.0);
        for (floats, half) in floats.iter_mut().zip(halves_of(values)) {
            // SAFETY: feature as above; 16 bytes are read, the array's size.
            *floats = unsafe {
                let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(half.as_ptr().cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
            };
        }
        floats
    }

    #[inline(always)]
    fn store_bf16(self, v: Self::Floats, out: &mut [bf16; LANES]) {
        // SAFETY: feature as above; 32 bytes are written, the array's size.
        unsafe {
            let mut upper = [_mm256_setzero_si256(); 2];
            for (upper, v) in upper.iter_mut().zip(v) {
                let bits = _mm256_castps_si256(v);
                let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
                let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
                *upper = _mm256_srli_epi32::<16>(rounded);
            }
            // Packing goes through each 128-bit lane on its own.
            let upper = _mm256_permute4x64_epi64::<0xd8>(_mm256_packus_epi32(upper[0], upper[1]));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), upper);
        }
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_add_ps, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_sub_ps, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_mul_ps, a, b)
    }

    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_div_ps, a, b)
    }

    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_min_ps, a, b)
    }

    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(_mm256_max_ps, a, b)
    }

    #[inline(always)]
    fn abs(self, v: Self::Floats) -> Self::Floats {
        each!(_mm256_andnot_ps, self.splat(-0.0), v)
    }

    #[inline(always)]
    fn max_magnitude(self, max: Self::Floats, v: Self::Floats) -> Self::Floats {
        let mut larger = self.abs(v);
        for (v, max) in larger.iter_mut().zip(max) {
            *v = avx2!({
                let bits = _mm256_max_epi32(_mm256_castps_si256(max), _mm256_castps_si256(*v));
                _mm256_castsi256_ps(bits)
            });
        }
        larger
    }

    #[inline(always)]
    fn equal(self, a: Self::Floats, b: Self::Floats) -> u16 {
        self.mask(avx2!([_mm256_cmp_ps::<_CMP_EQ_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_EQ_OQ>(a[1], b[1])]))
    }

    #[inline(always)]
    fn greater(self, a: Self::Floats, b: Self::Floats) -> u16 {
        self.mask(avx2!([_mm256_cmp_ps::<_CMP_GT_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_GT_OQ>(a[1], b[1])]))
    }

    #[inline(always)]
    fn replace(self, mut v: Self::Floats, lanes: u16, value: f32) -> Self::Floats {
        for (v, lanes) in v.iter_mut().zip(lanes.to_le_bytes()) {
            *v = avx2!({
                let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let set = _mm256_and_si256(_mm256_set1_epi32(lanes.into()), bits);
                let chosen = _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bits));
                _mm256_blendv_ps(*v, _mm256_set1_ps(value), chosen)
            });
        }
        v
    }

    #[inline(always)]
    fn exponent(self, v: Self::Floats) -> Self::Floats {
        let mut exponents = v;
        for v in &mut exponents {
            *v = avx2!({
                let biased = _mm256_srli_epi32::<23>(_mm256_castps_si256(*v));
                _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)))
            });
        }
        exponents
    }

    #[inline(always)]
    fn mantissa(self, v: Self::Floats) -> Self::Floats {
        let mut mantissas = v;
        for v in &mut mantissas {
            *v = avx2!({
                let fraction = _mm256_and_ps(*v, _mm256_castsi256_ps(_mm256_set1_epi32(0x007f_ffff)));
                _mm256_or_ps(fraction, _mm256_set1_ps(1.0))
            });
        }
        mantissas
    }

    #[inline(always)]
    fn halves<const W: usize>(self, a: Self::Floats, b: Self::Floats) -> (Self::Floats, Self::Floats) {
        avx2!(match W {
            8 => ([a[0], b[0]], [a[1], b[1]]),
            4 => (
                [_mm256_permute2f128_ps::<0x20>(a[0], a[1]), _mm256_permute2f128_ps::<0x20>(b[0], b[1])],
                [_mm256_permute2f128_ps::<0x31>(a[0], a[1]), _mm256_permute2f128_ps::<0x31>(b[0], b[1])],
            ),
            2 => (
                [_mm256_shuffle_ps::<0x44>(a[0], b[0]), _mm256_shuffle_ps::<0x44>(a[1], b[1])],
                [_mm256_shuffle_ps::<0xee>(a[0], b[0]), _mm256_shuffle_ps::<0xee>(a[1], b[1])],
            ),
            _ => (
                [_mm256_shuffle_ps::<0x88>(a[0], b[0]), _mm256_shuffle_ps::<0x88>(a[1], b[1])],
                [_mm256_shuffle_ps::<0xdd>(a[0], b[0]), _mm256_shuffle_ps::<0xdd>(a[1], b[1])],
            ),
        })
    }

    #[inline(always)]
    fn butterfly(self, [low, high]: Self::Floats) -> Self::Floats {
        /// The sum in lanes whose partner is behind them, the difference in the others, marked in `SECOND`.
        macro_rules! stride {
            ($v:expr, $second:literal, $swap:expr) => {{
                let (v, swapped) = ($v, $swap);
                let signs = _mm256_blend_ps::<$second>(_mm256_set1_ps(1.0), _mm256_set1_ps(-1.0));
                _mm256_fmadd_ps(v, signs, swapped)
            }};
        }
        avx2!({
            let mut halves = [_mm256_add_ps(low, high), _mm256_sub_ps(low, high)];
            for v in &mut halves {
                *v = stride!(*v, 0xf0, _mm256_permute2f128_ps::<0x01>(*v, *v));
                *v = stride!(*v, 0xcc, _mm256_permute_ps::<0x4e>(*v));
                *v = stride!(*v, 0xaa, _mm256_permute_ps::<0xb1>(*v));
            }
            halves
        })
    }

    #[inline(always)]
    fn round_to_codes(self, v: [Self::Floats; 4], offset: i32) -> Self::Codes {
        avx2!({
            let mut words = [_mm256_setzero_si256(); 4];
            for (words, [low, high]) in words.iter_mut().zip(v) {
                *words = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
            }
            // Packing went through each 128-bit lane on its own: four codes of each register.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let mut codes = [_mm256_setzero_si256(); 2];
            for (codes, words) in codes.iter_mut().zip(words.as_chunks::<2>().0) {
                let bytes = if offset == 0 {
                    _mm256_packus_epi16(words[0], words[1])
                } else {
                    _mm256_add_epi8(_mm256_packs_epi16(words[0], words[1]), _mm256_set1_epi8(offset as i8))
                };
                *codes = _mm256_permutevar8x32_epi32(bytes, order);
            }
            codes
        })
    }

    #[inline(always)]
    fn clamp_codes(self, width: u32, codes: Self::Codes) -> Self::Codes {
        let largest = [avx2!(_mm256_set1_epi64x(JOIN[width as usize].largest)); 2];
        each!(_mm256_min_epu8, codes, largest)
    }

    #[inline(always)]
    fn codes_to_floats(self, codes: Self::Codes) -> [Self::Floats; 4] {
        let mut floats = [self.splat(0.0); 4];
        for (floats, codes) in floats.as_chunks_mut::<2>().0.iter_mut().zip(codes) {
            avx2!({
                let (low, high) = (_mm256_castsi256_si128(codes), _mm256_extracti128_si256::<1>(codes));
                for (floats, codes) in floats.iter_mut().zip([low, high]) {
                    *floats = [
                        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes)),
                        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128::<8>(codes))),
                    ];
                }
            });
        }
        floats
    }

    #[inline(always)]
    fn pack(self, width: u32, codes: Self::Codes, out: &mut [u8]) {
        let mut streams = codes;
        for codes in &mut streams {
            *codes = avx2!({
                // Codes join to pairs, pairs to fours, fours to eights.
                let join = &JOIN[width as usize];
                let pairs = _mm256_maddubs_epi16(_mm256_set1_epi64x(join.pairs), *codes);
                let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi64x(join.fours));
                let low = _mm256_and_si256(fours, _mm256_set1_epi64x(0xffff_ffff));
                let high = _mm256_sllv_epi64(_mm256_srli_epi64::<32>(fours), _mm256_set1_epi64x(join.shift));
                let eights = if width == 8 { *codes } else { _mm256_or_si256(low, high) };
                _mm256_shuffle_epi8(eights, self.shuffle(&LANES_TO_STREAM[width as usize]))
            });
        }
        let len = 8 * width as usize;
        if let Some(room) = out.first_chunk_mut::<PACK_ROOM>() {
            self.store_streams(width, streams, room);
        } else {
            let mut bytes = [0; PACK_ROOM];
            self.store_streams(width, streams, &mut bytes);
            out[..len].copy_from_slice(&bytes[..len]);
        }
    }

    #[inline(always)]
    fn unpack(self, width: u32, bytes: &[u8]) -> Self::Codes {
        match bytes.first_chunk::<PACK_ROOM>() {
            Some(room) => self.unpack_room(width, room),
            None => self.unpack_room(width, &padded(&bytes[..8 * width as usize])),
        }
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
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        each!(_mm256_fmadd_ps, a, b, c)
    }

    #[inline(always)]
    fn dequantize(
        self,
        width: u32,
        bytes: &[u8],
        step: Self::Floats,
        zero: Self::Floats,
    ) -> [Self::Floats; 4] {
        let mut values = if width <= NARROW {
            match bytes.first_chunk() {
                Some(room) => self.unpack_narrow(width, room),
                None => self.unpack_narrow(width, &padded(&bytes[..8 * width as usize])),
            }
        } else {
            self.codes_to_floats(self.unpack(width, bytes))
        };
        for value in &mut values {
            *value = self.mul_add(*value, step, zero);
        }
        values
    }
}

/// Eight codes of up to this many bits fit one 32-bit lane.
const NARROW: u32 = 4;

impl Avx2 {
    /// The part of a shuffle table for sixteen codes, in both lanes.
    #[inline(always)]
    fn shuffle(self, table: &[u8; PACK_ROOM]) -> __m256i {
        // SAFETY: `self` proves the feature; 16 bytes are read, within the array.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())) }
    }

    /// Stores the streams of sixteen codes each one behind the other, the zeros behind one under the next.
    #[inline(always)]
    fn store_streams(self, width: u32, [a, b]: [__m256i; 2], out: &mut [u8; PACK_ROOM]) {
        let streams = avx2!([
            _mm256_castsi256_si128(a),
            _mm256_extracti128_si256::<1>(a),
            _mm256_castsi256_si128(b),
            _mm256_extracti128_si256::<1>(b),
        ]);
        for (i, stream) in streams.into_iter().enumerate() {
            let place: &mut [u8; 16] =
                out[i * 2 * width as usize..].first_chunk_mut().expect("a width of at most 8");
            // SAFETY: `self` proves the feature; 16 bytes are written, the array's size.
            unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), stream) }
        }
    }

    /// The codes of up to [`NARROW`] bits in front, as floats: eight at a time are shifted out of a stream that every lane
    /// has.
    #[inline(always)]
    fn unpack_narrow(self, width: u32, bytes: &[u8; 32]) -> [[__m256; 2]; 4] {
        let mut codes = [self.splat(0.0); 4];
        let (starts, largest) = avx2!((
            _mm256_mullo_epi32(
                _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                _mm256_set1_epi32(width.cast_signed())
            ),
            _mm256_set1_epi32((1 << width) - 1),
        ));
        for (i, codes) in codes.as_flattened_mut().iter_mut().enumerate() {
            let stream: &[u8; 4] = bytes[i * width as usize..].first_chunk().expect("a width of at most 4");
            let stream = i32::from_le_bytes(*stream);
            *codes = avx2!({
                let moved = _mm256_srlv_epi32(_mm256_set1_epi32(stream), starts);
                _mm256_cvtepi32_ps(_mm256_and_si256(moved, largest))
            });
        }
        codes
    }

    #[inline(always)]
    fn unpack_room(self, width: u32, bytes: &[u8; PACK_ROOM]) -> [__m256i; 2] {
        let mut streams = [avx2!(_mm_setzero_si128()); 4];
        for (i, stream) in streams.iter_mut().enumerate() {
            let place: &[u8; 16] =
                bytes[i * 2 * width as usize..].first_chunk().expect("a width of at most 8");
            // SAFETY: `self` proves the feature; 16 bytes are read, the array's size.
            *stream = unsafe { _mm_loadu_si128(place.as_ptr().cast()) };
        }
        let [a, b, c, d] = streams;
        let mut codes = avx2!([_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)]);
        for codes in &mut codes {
            *codes = avx2!(_mm256_shuffle_epi8(*codes, self.shuffle(&STREAM_TO_LANES[width as usize])));
            if width < 8 {
                // Eights part to fours, fours to pairs, pairs to codes.
                *codes = self.part(*codes, 4 * width, 32, 1);
                *codes = self.part(*codes, 2 * width, 16, 0x0000_0001_0000_0001);
                *codes = self.part(*codes, width, 8, 0x0001_0001_0001_0001);
            }
        }
        codes
    }

    /// In each of the lanes that `ones` marks, twice `lane` bits wide, moves the second `bits` bits up to bit `lane` and
    /// cuts both halves out.
    #[inline(always)]
    fn part(self, v: __m256i, bits: u32, lane: u32, ones: i64) -> __m256i {
        avx2!({
            let low = _mm256_set1_epi64x(((1 << bits) - 1) * ones);
            let high = _mm256_sllv_epi64(low, _mm256_set1_epi64x(i64::from(lane)));
            let moved = _mm256_sllv_epi64(v, _mm256_set1_epi64x(i64::from(lane - bits)));
            _mm256_or_si256(_mm256_and_si256(v, low), _mm256_and_si256(moved, high))
        })
    }

    #[inline(always)]
    fn mask(self, lanes: [__m256; 2]) -> u16 {
        let [low, high] = each!(_mm256_movemask_ps, lanes);
        (low | high << 8) as u16
    }

    /// Rounded floats with `offset` as streams of eight codes in each 128 bits.
    #[inline(always)]
    fn wide_streams(self, width: u32, v: [[__m256; 2]; 4], offset: i32) -> [__m256i; 4] {
        let mut streams = [avx2!(_mm256_setzero_si256()); 4];
        for (stream, [low, high]) in streams.iter_mut().zip(v) {
            *stream = avx2!({
                let offset = _mm256_set1_epi32(offset);
                let low = _mm256_add_epi32(_mm256_cvtps_epi32(low), offset);
                let high = _mm256_add_epi32(_mm256_cvtps_epi32(high), offset);
                // Packing goes through each 128-bit lane on its own.
                let codes = _mm256_permute4x64_epi64::<0xd8>(_mm256_packus_epi32(low, high));
                // Codes join to pairs, pairs to fours, fours to eights.
                let pairs = self.join(codes, width, 16, 0x0000_0001_0000_0001);
                let fours = self.join(pairs, 2 * width, 32, 1);
                let bits = i64::from(4 * width);
                let low = _mm256_srlv_epi64(fours, _mm256_setr_epi64x(0, 64 - bits, 0, 64 - bits));
                let high = _mm256_sllv_epi64(_mm256_bsrli_epi128::<8>(fours), _mm256_set1_epi64x(bits));
                _mm256_or_si256(low, high)
            });
        }
        streams
    }

    /// In each of the lanes that `ones` marks, twice `lane` bits wide, moves the upper half down to bit `bits`.
    #[inline(always)]
    fn join(self, v: __m256i, bits: u32, lane: u32, ones: i64) -> __m256i {
        avx2!({
            let low = _mm256_set1_epi64x(((1 << lane) - 1) * ones);
            let high = _mm256_andnot_si256(low, v);
            let moved = _mm256_srlv_epi64(high, _mm256_set1_epi64x(i64::from(lane - bits)));
            _mm256_or_si256(_mm256_and_si256(v, low), moved)
        })
    }

    /// As [`Self::store_streams`], of eight codes each.
    #[inline(always)]
    fn store_wide_streams(self, width: u32, streams: [__m256i; 4], out: &mut [u8; WIDE_ROOM]) {
        let len = width as usize;
        for (i, stream) in streams.into_iter().enumerate() {
            let halves = avx2!([_mm256_castsi256_si128(stream), _mm256_extracti128_si256::<1>(stream)]);
            for (half, place) in halves.into_iter().zip([2 * i * len, (2 * i + 1) * len]) {
                let place: &mut [u8; 16] = out[place..].first_chunk_mut().expect("a width of at most 16");
                // SAFETY: `self` proves the feature; 16 bytes are written, the array's size.
                unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), half) }
            }
        }
    }

    #[inline(always)]
    fn unpack_wide_room(self, width: u32, bytes: &[u8; WIDE_ROOM]) -> [[__m256; 2]; 4] {
        let wide = wide(width);
        let (table, shifts): (&[u8; 32], &[u32; 8]) =
            (wide.to_lanes.first_chunk().expect("64"), wide.shifts.first_chunk().expect("16"));
        // SAFETY: `self` proves the feature; each load reads 32 bytes, the size of its array.
        let (table, shifts) = unsafe {
            (_mm256_loadu_si256(table.as_ptr().cast()), _mm256_loadu_si256(shifts.as_ptr().cast()))
        };
        let mut floats = [self.splat(0.0); 4];
        for (i, floats) in floats.as_flattened_mut().iter_mut().enumerate() {
            let stream: &[u8; 16] = bytes[i * width as usize..].first_chunk().expect("a width of at most 16");
            // SAFETY: `self` proves the feature; 16 bytes are read, the array's size.
            let stream = unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(stream.as_ptr().cast())) };
            *floats = avx2!({
                let codes = _mm256_srlv_epi32(_mm256_shuffle_epi8(stream, table), shifts);
                _mm256_cvtepi32_ps(_mm256_and_si256(codes, _mm256_set1_epi32((1 << width) - 1)))
            });
        }
        floats
    }
}

#[inline(always)]
fn halves_of<T>(values: &[T; LANES]) -> [&[T; 8]; 2] {
    let (halves, _) = values.as_chunks();
    [&halves[0], &halves[1]]
}
