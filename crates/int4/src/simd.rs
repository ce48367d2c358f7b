//! Sixteen lanes, as every instruction set has them: the operations that the passes over floats are written in.
//!
//! A [`Kernel`] is written once, generic over [`Simd`], and compiled for each instruction set by [`Simd::vectorize`]. A
//! value of a type that implements the trait is the proof that the processor has the instructions: only `detect` makes one.
//! Every operation rounds as IEEE 754 says, once, half to even, so that all instruction sets give the same bits.

#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its instructions"
)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod portable;

/// Lanes of a vector. Element `i` of a sum belongs to lane `i % LANES`.
pub(crate) const LANES: usize = 16;

/// Bytes of a vector's 4-bit codes.
pub(crate) const CODE_BYTES: usize = LANES / 2;

/// A loop with its arguments; [`Isa::run`](crate::Isa) computes it. Implementations are `#[inline(always)]`, and so is
/// what they call.
pub(crate) trait Kernel: Sized {
    type Output;

    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The operations of one instruction set.
pub(crate) trait Simd: Copy {
    /// Sixteen `f32`.
    type Floats: Copy;
    /// Sixteen `u32`.
    type Ints: Copy;

    /// Runs a kernel compiled with this instruction set.
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output;

    fn splat(self, value: f32) -> Self::Floats;
    fn load(self, values: &[f32; LANES]) -> Self::Floats;
    fn store(self, v: Self::Floats, out: &mut [f32; LANES]);
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `b` where `a` is NaN.
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `b` where `a` is NaN.
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn abs(self, v: Self::Floats) -> Self::Floats;
    fn floor(self, v: Self::Floats) -> Self::Floats;
    /// To integers, half to even.
    fn round(self, v: Self::Floats) -> Self::Floats;
    /// Bit `i` says whether lane `i` of `a` is less than that of `b`, or equal.
    fn at_most(self, a: Self::Floats, b: Self::Floats) -> u16;
    /// The lanes of `v` whose bit is set, and 0 in the others.
    fn keep(self, v: Self::Floats, lanes: u16) -> Self::Floats;

    /// One stride of the Hadamard butterfly inside a vector, `W` being 8, 4, 2 or 1: of every two lanes `i` and `i + W`,
    /// bit `W` of `i` clear, the first becomes their sum, the second their difference.
    fn butterfly<const W: usize>(self, v: Self::Floats) -> Self::Floats;

    /// The 4-bit two's complement codes of sixteen integers from -8 to 7: lane `2 i` in the low nibble of byte `i`.
    fn pack(self, v: Self::Floats) -> [u8; CODE_BYTES];
    /// The inverse of [`Simd::pack`].
    fn unpack(self, bytes: [u8; CODE_BYTES]) -> Self::Floats;

    /// Sixteen integers from -128 to 127.
    fn to_bytes(self, v: Self::Floats) -> [i8; LANES];

    /// `start`, `start + 1`, …
    fn count_from(self, start: u32) -> Self::Ints;
    fn xor(self, v: Self::Ints, value: u32) -> Self::Ints;
    /// The low 32 bits of the products.
    fn multiply(self, v: Self::Ints, value: u32) -> Self::Ints;
    /// `v ^ (v >> BITS)`.
    fn xor_shift<const BITS: i32>(self, v: Self::Ints) -> Self::Ints;
    /// The upper 24 bits, as a number in `[0, 1)`.
    fn to_unit(self, v: Self::Ints) -> Self::Floats;

    /// The sum of the lanes: `j` with `j + 8`, then with `j + 4`, `j + 2` and `j + 1`.
    #[inline(always)]
    fn sum(self, v: Self::Floats) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        let mut width = LANES / 2;
        while width > 0 {
            for j in 0..width {
                lanes[j] += lanes[j + width];
            }
            width /= 2;
        }
        lanes[0]
    }

    /// The largest lane. No lane is NaN.
    #[inline(always)]
    fn largest(self, v: Self::Floats) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        let mut largest = lanes[0];
        for lane in lanes {
            largest = largest.max(lane);
        }
        largest
    }

    /// `v` within `-limit..=limit`; `-limit` where it is NaN.
    #[inline(always)]
    fn clamp(self, v: Self::Floats, limit: f32) -> Self::Floats {
        self.min(self.max(v, self.splat(-limit)), self.splat(limit))
    }
}

// There are loops where a closure would be shorter: a closure is a function of its own, which is compiled without the
// instructions unless it happens to be inlined first.
