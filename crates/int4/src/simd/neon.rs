//! NEON with dot products: 64-bit ARM from ARMv8.4, and most of ARMv8.2. Sixteen lanes are four registers.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]
#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its instructions"
)]

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::{CODE_BYTES, Kernel, LANES, Simd};

/// Proof that the processor has NEON and the dot product instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        (is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("dotprod")).then_some(Self(()))
    }
}

/// Instructions on registers.
macro_rules! neon {
    ($call:expr) => {
        // SAFETY: `self` is a `Neon`, which `detect` alone makes where the features are there; nothing else is asked of
        // the caller of an intrinsic on registers.
        unsafe { $call }
    };
}

/// An expression of each register. A closure would be a function of its own, compiled without the instructions.
macro_rules! map {
    ($v:expr, |$name:ident| $body:expr) => {{
        let [a, b, c, d] = $v;
        neon!([
            {
                let $name = a;
                $body
            },
            {
                let $name = b;
                $body
            },
            {
                let $name = c;
                $body
            },
            {
                let $name = d;
                $body
            }
        ])
    }};
}

/// A call for each register of the arguments.
macro_rules! each {
    ($call:path, $a:expr) => {
        neon!([$call($a[0]), $call($a[1]), $call($a[2]), $call($a[3])])
    };
    ($call:path, $a:expr, $b:expr) => {
        neon!([$call($a[0], $b[0]), $call($a[1], $b[1]), $call($a[2], $b[2]), $call($a[3], $b[3])])
    };
}

#[target_feature(enable = "neon,dotprod")]
fn run<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
    kernel.run(simd)
}

/// Bit `i` of each lane `i` of a register.
const BITS: [u32; 4] = [1, 2, 4, 8];

/// Sixteen integers as bytes.
#[target_feature(enable = "neon")]
fn to_bytes([a, b, c, d]: [float32x4_t; 4]) -> int8x16_t {
    let first = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
    let second = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(c)), vmovn_s32(vcvtnq_s32_f32(d)));
    vcombine_s8(vmovn_s16(first), vmovn_s16(second))
}

impl Simd for Neon {
    type Floats = [float32x4_t; 4];
    type Ints = [uint32x4_t; 4];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        neon!(run(self, kernel))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [float32x4_t; 4] {
        neon!([vdupq_n_f32(value); 4])
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [float32x4_t; 4] {
        // SAFETY: feature as above; 16 bytes are read from each quarter of the array's 64.
        unsafe {
            [
                vld1q_f32(values.as_ptr()),
                vld1q_f32(values[4..].as_ptr()),
                vld1q_f32(values[8..].as_ptr()),
                vld1q_f32(values[12..].as_ptr()),
            ]
        }
    }

    #[inline(always)]
    fn store(self, v: [float32x4_t; 4], out: &mut [f32; LANES]) {
        // SAFETY: feature as above; 16 bytes are written to each quarter of the array's 64.
        unsafe {
            vst1q_f32(out.as_mut_ptr(), v[0]);
            vst1q_f32(out[4..].as_mut_ptr(), v[1]);
            vst1q_f32(out[8..].as_mut_ptr(), v[2]);
            vst1q_f32(out[12..].as_mut_ptr(), v[3]);
        }
    }

    #[inline(always)]
    fn add(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vaddq_f32, a, b)
    }

    #[inline(always)]
    fn sub(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vsubq_f32, a, b)
    }

    #[inline(always)]
    fn mul(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vmulq_f32, a, b)
    }

    #[inline(always)]
    fn div(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vdivq_f32, a, b)
    }

    #[inline(always)]
    fn min(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vminnmq_f32, a, b)
    }

    #[inline(always)]
    fn max(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vmaxnmq_f32, a, b)
    }

    #[inline(always)]
    fn abs(self, v: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vabsq_f32, v)
    }

    #[inline(always)]
    fn floor(self, v: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vrndmq_f32, v)
    }

    #[inline(always)]
    fn round(self, v: [float32x4_t; 4]) -> [float32x4_t; 4] {
        each!(vrndnq_f32, v)
    }

    #[inline(always)]
    fn at_most(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> u16 {
        let masks = each!(vcleq_f32, a, b);
        // SAFETY: feature as above; 16 bytes are read, the array's size.
        let bit = unsafe { vld1q_u32(BITS.as_ptr()) };
        let [a, b, c, d] = map!(masks, |mask| vaddvq_u32(vandq_u32(mask, bit)) as u16);
        a | b << 4 | c << 8 | d << 12
    }

    #[inline(always)]
    fn keep(self, v: [float32x4_t; 4], lanes: u16) -> [float32x4_t; 4] {
        // SAFETY: feature as above; 16 bytes are read, the array's size.
        let bit = unsafe { vld1q_u32(BITS.as_ptr()) };
        let parts = [lanes, lanes >> 4, lanes >> 8, lanes >> 12];
        let masks = map!(parts, |part| vtstq_u32(vdupq_n_u32(u32::from(part)), bit));
        let bits = each!(vreinterpretq_u32_f32, v);
        let kept = each!(vandq_u32, bits, masks);
        each!(vreinterpretq_f32_u32, kept)
    }

    #[inline(always)]
    fn butterfly<const W: usize>(self, v: [float32x4_t; 4]) -> [float32x4_t; 4] {
        let [a, b, c, d] = v;
        match W {
            8 => neon!([vaddq_f32(a, c), vaddq_f32(b, d), vsubq_f32(a, c), vsubq_f32(b, d)]),
            4 => neon!([vaddq_f32(a, b), vsubq_f32(a, b), vaddq_f32(c, d), vsubq_f32(c, d)]),
            2 => map!(v, |v| {
                let partner = vextq_f32::<2>(v, v);
                vcombine_f32(vget_low_f32(vaddq_f32(partner, v)), vget_high_f32(vsubq_f32(partner, v)))
            }),
            _ => map!(v, |v| {
                let partner = vrev64q_f32(v);
                vtrn2q_f32(vaddq_f32(partner, v), vsubq_f32(partner, v))
            }),
        }
    }

    #[inline(always)]
    fn pack(self, v: [float32x4_t; 4]) -> [u8; CODE_BYTES] {
        neon!({
            let nibbles = vandq_u8(vreinterpretq_u8_s8(to_bytes(v)), vdupq_n_u8(15));
            let bytes = vorrq_u8(vuzp1q_u8(nibbles, nibbles), vshlq_n_u8::<4>(vuzp2q_u8(nibbles, nibbles)));
            vget_lane_u64::<0>(vreinterpret_u64_u8(vget_low_u8(bytes))).to_le_bytes()
        })
    }

    #[inline(always)]
    fn to_bytes(self, v: [float32x4_t; 4]) -> [i8; LANES] {
        let mut bytes = [0; LANES];
        // SAFETY: feature as above; 16 bytes are written, the array's size.
        unsafe { vst1q_s8(bytes.as_mut_ptr(), to_bytes(v)) }
        bytes
    }

    #[inline(always)]
    fn unpack(self, bytes: [u8; CODE_BYTES]) -> [float32x4_t; 4] {
        neon!({
            let bytes = vreinterpret_s8_u64(vdup_n_u64(u64::from_le_bytes(bytes)));
            let low = vshr_n_s8::<4>(vshl_n_s8::<4>(bytes));
            let high = vshr_n_s8::<4>(bytes);
            let [first, second] = [vmovl_s8(vzip1_s8(low, high)), vmovl_s8(vzip2_s8(low, high))];
            [
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(first))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(first))),
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(second))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(second))),
            ]
        })
    }

    #[inline(always)]
    fn count_from(self, start: u32) -> [uint32x4_t; 4] {
        const COUNT: [u32; 4] = [0, 1, 2, 3];
        // SAFETY: feature as above; 16 bytes are read, the array's size.
        let count = unsafe { vld1q_u32(COUNT.as_ptr()) };
        map!([0, 4, 8, 12], |first| vaddq_u32(vdupq_n_u32(start.wrapping_add(first)), count))
    }

    #[inline(always)]
    fn xor(self, v: [uint32x4_t; 4], value: u32) -> [uint32x4_t; 4] {
        map!(v, |v| veorq_u32(v, vdupq_n_u32(value)))
    }

    #[inline(always)]
    fn multiply(self, v: [uint32x4_t; 4], value: u32) -> [uint32x4_t; 4] {
        map!(v, |v| vmulq_u32(v, vdupq_n_u32(value)))
    }

    #[inline(always)]
    fn xor_shift<const BITS: i32>(self, v: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        map!(v, |v| veorq_u32(v, vshrq_n_u32::<BITS>(v)))
    }

    #[inline(always)]
    fn to_unit(self, v: [uint32x4_t; 4]) -> [float32x4_t; 4] {
        map!(v, |v| vmulq_f32(vcvtq_f32_u32(vshrq_n_u32::<8>(v)), vdupq_n_f32(1.0 / 16_777_216.0)))
    }
}
