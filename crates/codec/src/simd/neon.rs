//! NEON, which every 64-bit ARM processor has. Sixteen lanes are four registers.

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

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use half::{bf16, f16};

use super::layout::{LANES_TO_STREAM, STREAM_TO_LANES, padded, wide};
use super::{PACK_ROOM, Simd, WIDE_ROOM};
use crate::kernel::{Kernel, LANES};

/// Proof that the processor has NEON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

/// Instructions on registers.
macro_rules! neon {
    ($call:expr) => {
        // SAFETY: `self` is a `Neon`, which `detect` alone makes where the feature is there; nothing else is asked of
        // the caller of an intrinsic on registers.
        unsafe { $call }
    };
}

#[target_feature(enable = "neon")]
fn run<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
    kernel.simd(simd)
}

/// A call for each register of the arguments.
macro_rules! each {
    ($call:path, $a:expr) => {
        neon!([$call($a[0]), $call($a[1]), $call($a[2]), $call($a[3])])
    };
    ($call:path, $a:expr, $b:expr) => {
        neon!([$call($a[0], $b[0]), $call($a[1], $b[1]), $call($a[2], $b[2]), $call($a[3], $b[3])])
    };
    ($call:path, $a:expr, $b:expr, $c:expr) => {
        neon!([
            $call($a[0], $b[0], $c[0]),
            $call($a[1], $b[1], $c[1]),
            $call($a[2], $b[2], $c[2]),
            $call($a[3], $b[3], $c[3]),
        ])
    };
}

impl Simd for Neon {
    type Floats = [float32x4_t; 4];
    type Codes = [uint8x16_t; 4];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        neon!(run(self, kernel))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        [neon!(vdupq_n_f32(value)); 4]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Floats {
        // SAFETY: feature as above; 64 bytes are read, the array's size.
        let float32x4x4_t(a, b, c, d) = unsafe { vld1q_f32_x4(values.as_ptr()) };
        [a, b, c, d]
    }

    #[inline(always)]
    fn store(self, [a, b, c, d]: Self::Floats, out: &mut [f32; LANES]) {
        // SAFETY: feature as above; 64 bytes are written, the array's size.
        unsafe { vst1q_f32_x4(out.as_mut_ptr(), float32x4x4_t(a, b, c, d)) }
    }

    #[inline(always)]
    fn load_f16(self, values: &[f16; LANES]) -> Self::Floats {
        // SAFETY: feature as above; 32 bytes are read, the array's size.
        let uint16x4x4_t(a, b, c, d) = unsafe { vld1_u16_x4(values.as_ptr().cast()) };
        let halves = each!(vreinterpret_f16_u16, [a, b, c, d]);
        each!(vcvt_f32_f16, halves)
    }

    #[inline(always)]
    fn store_f16(self, v: Self::Floats, out: &mut [f16; LANES]) {
        let halves = each!(vcvt_f16_f32, v);
        let [a, b, c, d] = each!(vreinterpret_u16_f16, halves);
        // SAFETY: feature as above; 32 bytes are written, the array's size.
        unsafe { vst1_u16_x4(out.as_mut_ptr().cast(), uint16x4x4_t(a, b, c, d)) }
    }

    #[inline(always)]
    fn load_bf16(self, values: &[bf16; LANES]) -> Self::Floats {
        // SAFETY: feature as above; 32 bytes are read, the array's size.
        let uint16x4x4_t(a, b, c, d) = unsafe { vld1_u16_x4(values.as_ptr().cast()) };
        let bits = each!(vshll_n_u16::<16>, [a, b, c, d]);
        each!(vreinterpretq_f32_u32, bits)
    }

    #[inline(always)]
    fn store_bf16(self, v: Self::Floats, out: &mut [bf16; LANES]) {
        let mut upper = [neon!(vdup_n_u16(0)); 4];
        for (upper, v) in upper.iter_mut().zip(v) {
            *upper = neon!({
                let bits = vreinterpretq_u32_f32(v);
                let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
                vshrn_n_u32::<16>(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd))
            });
        }
        let [a, b, c, d] = upper;
        // SAFETY: feature as above; 32 bytes are written, the array's size.
        unsafe { vst1_u16_x4(out.as_mut_ptr().cast(), uint16x4x4_t(a, b, c, d)) }
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vaddq_f32, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vsubq_f32, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vmulq_f32, a, b)
    }

    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vdivq_f32, a, b)
    }

    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vminq_f32, a, b)
    }

    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each!(vmaxq_f32, a, b)
    }

    #[inline(always)]
    fn abs(self, v: Self::Floats) -> Self::Floats {
        each!(vabsq_f32, v)
    }

    #[inline(always)]
    fn max_magnitude(self, max: Self::Floats, v: Self::Floats) -> Self::Floats {
        let magnitude = self.abs(v);
        let (max, magnitude) = (each!(vreinterpretq_u32_f32, max), each!(vreinterpretq_u32_f32, magnitude));
        let larger = each!(vmaxq_u32, max, magnitude);
        each!(vreinterpretq_f32_u32, larger)
    }

    #[inline(always)]
    fn equal(self, a: Self::Floats, b: Self::Floats) -> u16 {
        self.mask(each!(vceqq_f32, a, b))
    }

    #[inline(always)]
    fn greater(self, a: Self::Floats, b: Self::Floats) -> u16 {
        self.mask(each!(vcgtq_f32, a, b))
    }

    #[inline(always)]
    fn replace(self, v: Self::Floats, lanes: u16, value: f32) -> Self::Floats {
        let (lanes, value) = neon!(([vdupq_n_u32(lanes.into()); 4], [vdupq_n_f32(value); 4]));
        let chosen = each!(vtstq_u32, lanes, self.lane_bits());
        each!(vbslq_f32, chosen, value, v)
    }

    #[inline(always)]
    fn exponent(self, v: Self::Floats) -> Self::Floats {
        let mut exponents = v;
        for v in &mut exponents {
            *v = neon!({
                let biased = vreinterpretq_s32_u32(vshrq_n_u32::<23>(vreinterpretq_u32_f32(*v)));
                vcvtq_f32_s32(vsubq_s32(biased, vdupq_n_s32(127)))
            });
        }
        exponents
    }

    #[inline(always)]
    fn mantissa(self, v: Self::Floats) -> Self::Floats {
        let mut mantissas = v;
        for v in &mut mantissas {
            // The fraction from `v`, all above it from 1.
            *v = neon!(vbslq_f32(vdupq_n_u32(0x007f_ffff), *v, vdupq_n_f32(1.0)));
        }
        mantissas
    }

    #[inline(always)]
    fn halves<const W: usize>(self, a: Self::Floats, b: Self::Floats) -> (Self::Floats, Self::Floats) {
        match W {
            8 => ([a[0], a[1], b[0], b[1]], [a[2], a[3], b[2], b[3]]),
            4 => ([a[0], a[2], b[0], b[2]], [a[1], a[3], b[1], b[3]]),
            2 => {
                let (a, b) = (each!(vreinterpretq_f64_f32, a), each!(vreinterpretq_f64_f32, b));
                let (first, second) = (each!(vzip1q_f64, a, b), each!(vzip2q_f64, a, b));
                (each!(vreinterpretq_f32_f64, first), each!(vreinterpretq_f32_f64, second))
            }
            _ => (each!(vuzp1q_f32, a, b), each!(vuzp2q_f32, a, b)),
        }
    }

    #[inline(always)]
    fn butterfly(self, [a, b, c, d]: Self::Floats) -> Self::Floats {
        neon!({
            let [a, b, c, d] = [vaddq_f32(a, c), vaddq_f32(b, d), vsubq_f32(a, c), vsubq_f32(b, d)];
            let [a, b] = [vaddq_f32(a, b), vsubq_f32(a, b)];
            let [c, d] = [vaddq_f32(c, d), vsubq_f32(c, d)];
            let ([a, b], [c, d]) = (self.small_strides(a, b), self.small_strides(c, d));
            [a, b, c, d]
        })
    }

    #[inline(always)]
    fn round_to_codes(self, v: [Self::Floats; 4], offset: i32) -> Self::Codes {
        let (mut codes, offset) = neon!(([vdupq_n_u8(0); 4], [vdupq_n_s32(offset); 4]));
        for (codes, v) in codes.iter_mut().zip(v) {
            let integers = each!(vcvtnq_s32_f32, v);
            let [a, b, c, d] = each!(vaddq_s32, integers, offset);
            *codes = neon!({
                let low = vqmovn_high_s32(vqmovn_s32(a), b);
                let high = vqmovn_high_s32(vqmovn_s32(c), d);
                vqmovun_high_s16(vqmovun_s16(low), high)
            });
        }
        codes
    }

    #[inline(always)]
    fn clamp_codes(self, width: u32, codes: Self::Codes) -> Self::Codes {
        let largest = [neon!(vdupq_n_u8(((1_u32 << width) - 1) as u8)); 4];
        each!(vminq_u8, codes, largest)
    }

    #[inline(always)]
    fn codes_to_floats(self, codes: Self::Codes) -> [Self::Floats; 4] {
        let mut floats = [self.splat(0.0); 4];
        for (floats, codes) in floats.iter_mut().zip(codes) {
            *floats = neon!({
                let (low, high) = (vmovl_u8(vget_low_u8(codes)), vmovl_high_u8(codes));
                [
                    vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
                    vcvtq_f32_u32(vmovl_high_u16(low)),
                    vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
                    vcvtq_f32_u32(vmovl_high_u16(high)),
                ]
            });
        }
        floats
    }

    #[inline(always)]
    fn pack(self, width: u32, codes: Self::Codes, out: &mut [u8]) {
        let mut streams = codes;
        for codes in &mut streams {
            let mut lanes = neon!(vreinterpretq_u64_u8(*codes));
            if width < 8 {
                // Codes join to pairs, pairs to fours, fours to eights.
                lanes = self.join(lanes, width, 8, 0x0001_0001_0001_0001);
                lanes = self.join(lanes, 2 * width, 16, 0x0000_0001_0000_0001);
                lanes = self.join(lanes, 4 * width, 32, 1);
            }
            let table = self.table(&LANES_TO_STREAM[width as usize]);
            *codes = neon!(vqtbl1q_u8(vreinterpretq_u8_u64(lanes), table));
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
        each!(vfmaq_f32, c, a, b)
    }
}

impl Neon {
    /// Bit `i` in lane `i`.
    #[inline(always)]
    fn lane_bits(self) -> [uint32x4_t; 4] {
        const BITS: [u32; LANES] = {
            let mut bits = [1; LANES];
            let mut i = 0;
            while i < LANES {
                bits[i] <<= i;
                i += 1;
            }
            bits
        };
        // SAFETY: `self` proves the feature; 64 bytes are read, the array's size.
        let uint32x4x4_t(a, b, c, d) = unsafe { vld1q_u32_x4(BITS.as_ptr()) };
        [a, b, c, d]
    }

    /// Lanes of all ones or all zeros as bits.
    #[inline(always)]
    fn mask(self, lanes: [uint32x4_t; 4]) -> u16 {
        let [a, b, c, d] = each!(vandq_u32, lanes, self.lane_bits());
        neon!(vaddvq_u32(vorrq_u32(vorrq_u32(a, b), vorrq_u32(c, d)))) as u16
    }

    /// The strides 2 and 1 of the butterfly, of two registers.
    #[inline(always)]
    fn small_strides(self, a: float32x4_t, b: float32x4_t) -> [float32x4_t; 2] {
        neon!({
            let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
            let first = vreinterpretq_f32_f64(vzip1q_f64(a, b));
            let second = vreinterpretq_f32_f64(vzip2q_f64(a, b));
            let (sum, difference) = (vaddq_f32(first, second), vsubq_f32(first, second));
            let (first, second) = (vuzp1q_f32(sum, difference), vuzp2q_f32(sum, difference));
            let (sum, difference) = (vaddq_f32(first, second), vsubq_f32(first, second));
            [vtrn1q_f32(sum, difference), vtrn2q_f32(sum, difference)]
        })
    }

    /// In each of the lanes that `ones` marks, twice `lane` bits wide, moves what is in the upper half down to bit
    /// `bits`.
    #[inline(always)]
    fn join(self, v: uint64x2_t, bits: u32, lane: u32, ones: u64) -> uint64x2_t {
        neon!({
            let low = vdupq_n_u64(((1 << lane) - 1) * ones);
            let moved = vshlq_u64(vbicq_u64(v, low), vdupq_n_s64(i64::from(bits) - i64::from(lane)));
            vorrq_u64(vandq_u64(v, low), moved)
        })
    }

    /// In each of the lanes that `ones` marks, twice `lane` bits wide, moves the second `bits` bits up to bit `lane` and
    /// cuts both halves out.
    #[inline(always)]
    fn part(self, v: uint64x2_t, bits: u32, lane: u32, ones: u64) -> uint64x2_t {
        let low = ((1 << bits) - 1) * ones;
        neon!({
            let moved = vshlq_u64(v, vdupq_n_s64(i64::from(lane - bits)));
            vorrq_u64(vandq_u64(v, vdupq_n_u64(low)), vandq_u64(moved, vdupq_n_u64(low << lane)))
        })
    }

    /// The part of a shuffle table for sixteen codes.
    #[inline(always)]
    fn table(self, table: &[u8; PACK_ROOM]) -> uint8x16_t {
        // SAFETY: `self` proves the feature; 16 bytes are read, within the array.
        unsafe { vld1q_u8(table.as_ptr()) }
    }

    /// Stores the streams of sixteen codes each one behind the other, the zeros behind one under the next.
    #[inline(always)]
    fn store_streams(self, width: u32, streams: [uint8x16_t; 4], out: &mut [u8; PACK_ROOM]) {
        for (i, stream) in streams.into_iter().enumerate() {
            let place: &mut [u8; 16] =
                out[i * 2 * width as usize..].first_chunk_mut().expect("a width of at most 8");
            // SAFETY: `self` proves the feature; 16 bytes are written, the array's size.
            unsafe { vst1q_u8(place.as_mut_ptr(), stream) }
        }
    }

    #[inline(always)]
    fn unpack_room(self, width: u32, bytes: &[u8; PACK_ROOM]) -> [uint8x16_t; 4] {
        let mut codes = [neon!(vdupq_n_u8(0)); 4];
        let table = self.table(&STREAM_TO_LANES[width as usize]);
        for (i, codes) in codes.iter_mut().enumerate() {
            let place: &[u8; 16] =
                bytes[i * 2 * width as usize..].first_chunk().expect("a width of at most 8");
            // SAFETY: `self` proves the feature; 16 bytes are read, the array's size.
            *codes = unsafe { vqtbl1q_u8(vld1q_u8(place.as_ptr()), table) };
            if width < 8 {
                // Eights part to fours, fours to pairs, pairs to codes.
                let mut lanes = neon!(vreinterpretq_u64_u8(*codes));
                lanes = self.part(lanes, 4 * width, 32, 1);
                lanes = self.part(lanes, 2 * width, 16, 0x0000_0001_0000_0001);
                lanes = self.part(lanes, width, 8, 0x0001_0001_0001_0001);
                *codes = neon!(vreinterpretq_u8_u64(lanes));
            }
        }
        codes
    }

    /// Rounded floats with `offset` as streams of eight codes.
    #[inline(always)]
    fn wide_streams(self, width: u32, v: [[float32x4_t; 4]; 4], offset: i32) -> [[uint8x16_t; 2]; 4] {
        let (mut streams, offset) = neon!(([[vdupq_n_u8(0); 2]; 4], [vdupq_n_s32(offset); 4]));
        for (streams, v) in streams.iter_mut().zip(v) {
            let integers = each!(vcvtnq_s32_f32, v);
            let [a, b, c, d] = each!(vaddq_s32, integers, offset);
            for (stream, [low, high]) in streams.iter_mut().zip([[a, b], [c, d]]) {
                *stream = neon!({
                    let codes = vreinterpretq_u64_u16(vqmovun_high_s32(vqmovun_s32(low), high));
                    // Codes join to pairs, pairs to fours, fours to eights.
                    let pairs = self.join(codes, width, 16, 0x0000_0001_0000_0001);
                    let fours = self.join(pairs, 2 * width, 32, 1);
                    let bits = i64::from(4 * width);
                    let down = vcombine_s64(vdup_n_s64(0), vdup_n_s64(bits - 64));
                    let high = vshlq_u64(vextq_u64::<1>(fours, vdupq_n_u64(0)), vdupq_n_s64(bits));
                    vreinterpretq_u8_u64(vorrq_u64(vshlq_u64(fours, down), high))
                });
            }
        }
        streams
    }

    /// As [`Self::store_streams`], of eight codes each.
    #[inline(always)]
    fn store_wide_streams(self, width: u32, streams: [[uint8x16_t; 2]; 4], out: &mut [u8; WIDE_ROOM]) {
        for (i, stream) in streams.as_flattened().iter().enumerate() {
            let place: &mut [u8; 16] =
                out[i * width as usize..].first_chunk_mut().expect("a width of at most 16");
            // SAFETY: `self` proves the feature; 16 bytes are written, the array's size.
            unsafe { vst1q_u8(place.as_mut_ptr(), *stream) }
        }
    }

    #[inline(always)]
    fn unpack_wide_room(self, width: u32, bytes: &[u8; WIDE_ROOM]) -> [[float32x4_t; 4]; 4] {
        let wide = wide(width);
        let (table, shifts): (&[u8; 32], &[u32; 8]) =
            (wide.to_lanes.first_chunk().expect("64"), wide.shifts.first_chunk().expect("16"));
        // SAFETY: `self` proves the feature; each load reads 32 bytes, the size of its array.
        let (table, shifts) = unsafe { (vld1q_u8_x2(table.as_ptr()), vld1q_u32_x2(shifts.as_ptr())) };
        let halves = [(table.0, shifts.0), (table.1, shifts.1)];
        let mut floats = [self.splat(0.0); 4];
        for (i, floats) in floats.as_flattened_mut().as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let stream: &[u8; 16] = bytes[i * width as usize..].first_chunk().expect("a width of at most 16");
            // SAFETY: `self` proves the feature; 16 bytes are read, the array's size.
            let stream = unsafe { vld1q_u8(stream.as_ptr()) };
            for (floats, (table, shifts)) in floats.iter_mut().zip(halves) {
                *floats = neon!({
                    let lanes = vreinterpretq_u32_u8(vqtbl1q_u8(stream, table));
                    let codes = vshlq_u32(lanes, vnegq_s32(vreinterpretq_s32_u32(shifts)));
                    vcvtq_f32_u32(vandq_u32(codes, vdupq_n_u32((1 << width) - 1)))
                });
            }
        }
        floats
    }
}
