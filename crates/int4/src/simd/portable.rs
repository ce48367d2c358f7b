//! Plain code.

#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its caller's loop"
)]

use super::{CODE_BYTES, Kernel, LANES, Simd};

/// Every processor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portable;

#[inline(always)]
fn zip(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    type Floats = [f32; LANES];
    type Ints = [u32; LANES];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [f32; LANES] {
        *values
    }

    #[inline(always)]
    fn store(self, v: [f32; LANES], out: &mut [f32; LANES]) {
        *out = v;
    }

    #[inline(always)]
    fn add(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn min(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn abs(self, v: [f32; LANES]) -> [f32; LANES] {
        v.map(f32::abs)
    }

    #[inline(always)]
    fn floor(self, v: [f32; LANES]) -> [f32; LANES] {
        v.map(f32::floor)
    }

    #[inline(always)]
    fn round(self, v: [f32; LANES]) -> [f32; LANES] {
        v.map(f32::round_ties_even)
    }

    #[inline(always)]
    fn at_most(self, a: [f32; LANES], b: [f32; LANES]) -> u16 {
        (0..LANES).fold(0, |bits, i| bits | (u16::from(a[i] <= b[i]) << i))
    }

    #[inline(always)]
    fn keep(self, v: [f32; LANES], lanes: u16) -> [f32; LANES] {
        std::array::from_fn(|i| if lanes >> i & 1 == 1 { v[i] } else { 0.0 })
    }

    #[inline(always)]
    fn butterfly<const W: usize>(self, v: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| if i & W == 0 { v[i] + v[i + W] } else { v[i - W] - v[i] })
    }

    #[inline(always)]
    fn pack(self, v: [f32; LANES]) -> [u8; CODE_BYTES] {
        let nibble = |v: f32| (v.round_ties_even() as i8).cast_unsigned() & 15;
        std::array::from_fn(|i| nibble(v[2 * i]) | (nibble(v[2 * i + 1]) << 4))
    }

    #[inline(always)]
    fn unpack(self, bytes: [u8; CODE_BYTES]) -> [f32; LANES] {
        std::array::from_fn(|i| {
            let byte = bytes[i / 2];
            let nibble = if i % 2 == 0 { byte << 4 } else { byte };
            f32::from(nibble.cast_signed() >> 4)
        })
    }

    #[inline(always)]
    fn to_bytes(self, v: [f32; LANES]) -> [i8; LANES] {
        v.map(|v| v.round_ties_even() as i8)
    }

    #[inline(always)]
    fn count_from(self, start: u32) -> [u32; LANES] {
        std::array::from_fn(|i| start.wrapping_add(i as u32))
    }

    #[inline(always)]
    fn xor(self, v: [u32; LANES], value: u32) -> [u32; LANES] {
        v.map(|v| v ^ value)
    }

    #[inline(always)]
    fn multiply(self, v: [u32; LANES], value: u32) -> [u32; LANES] {
        v.map(|v| v.wrapping_mul(value))
    }

    #[inline(always)]
    fn xor_shift<const BITS: i32>(self, v: [u32; LANES]) -> [u32; LANES] {
        v.map(|v| v ^ (v >> BITS))
    }

    #[inline(always)]
    fn to_unit(self, v: [u32; LANES]) -> [f32; LANES] {
        v.map(|v| (v >> 8) as f32 * (1.0 / 16_777_216.0))
    }
}
