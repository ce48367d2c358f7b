//! Sixteen lanes of `f32`, as every instruction set has them: the operations that the fast kernels are written in.
//!
//! A kernel is written once, generic over [`Simd`], and compiled for each instruction set by
//! [`Simd::vectorize`]. A value of a type that implements the trait is the proof that the processor has the
//! instructions: only `detect` makes one. Every operation rounds as IEEE 754 says, once, half to even; none
//! flushes subnormal numbers, and none fuses where that would show.

#![expect(
    clippy::inline_always,
    reason = "an operation that is not inlined is compiled without its instructions"
)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod layout;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

use half::{bf16, f16};

use crate::kernel::{Kernel, LANES};

/// Codes that are packed and unpacked at once.
pub(crate) const CODES: usize = 64;

/// Bytes that [`Simd::pack`] may write, whatever the width.
pub(crate) const PACK_ROOM: usize = 64;

/// Bytes that [`Simd::pack_wide`] may write, whatever the width.
pub(crate) const WIDE_ROOM: usize = 128;

/// The operations of one instruction set.
///
/// Where a method takes `min` or `max` of zeros of both signs, either may result.
pub(crate) trait Simd: Copy {
    /// Sixteen `f32`.
    type Floats: Copy;
    /// [`CODES`] codes of up to 8 bits, one a byte.
    type Codes: Copy;

    /// Runs a kernel compiled with this instruction set.
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output;

    fn splat(self, value: f32) -> Self::Floats;
    fn load(self, values: &[f32; LANES]) -> Self::Floats;
    fn store(self, v: Self::Floats, out: &mut [f32; LANES]);
    fn load_f16(self, values: &[f16; LANES]) -> Self::Floats;
    /// An overflow becomes infinity.
    fn store_f16(self, v: Self::Floats, out: &mut [f16; LANES]);
    fn load_bf16(self, values: &[bf16; LANES]) -> Self::Floats;
    /// An overflow becomes infinity.
    fn store_bf16(self, v: Self::Floats, out: &mut [bf16; LANES]);

    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn abs(self, v: Self::Floats) -> Self::Floats;
    /// The larger of `max`, which has no sign, and `|v|`, by bit pattern: NaN is larger than infinity.
    fn max_magnitude(self, max: Self::Floats, v: Self::Floats) -> Self::Floats;
    /// Bit `i` says whether lane `i` of `a` equals that of `b`.
    fn equal(self, a: Self::Floats, b: Self::Floats) -> u16;
    /// Bit `i` says whether lane `i` of `a` is greater than that of `b`.
    fn greater(self, a: Self::Floats, b: Self::Floats) -> u16;
    /// `v` with `value` in the lanes whose bit is set.
    fn replace(self, v: Self::Floats, lanes: u16, value: f32) -> Self::Floats;

    /// `floor(log2 v)` of positive normal numbers.
    fn exponent(self, v: Self::Floats) -> Self::Floats;
    /// `v / 2^floor(log2 v)`, in `[1, 2)`, of positive normal numbers.
    fn mantissa(self, v: Self::Floats) -> Self::Floats;

    /// Cuts `a` and `b` into runs of `2 W` lanes, `W` being 8, 4, 2 or 1, and returns the first halves of all runs
    /// and the second halves. The runs of `a` and `b` may be ordered in any way that is the same in both results and
    /// that [`Simd::TILE_OF_ROW`] undoes.
    fn halves<const W: usize>(self, a: Self::Floats, b: Self::Floats) -> (Self::Floats, Self::Floats);

    /// Which of sixteen vectors is to be row `i` of four rounds of [`Simd::halves`] with widths 8, 4, 2 and 1, for
    /// lane `j` of the result to belong to vector `j`.
    const TILE_OF_ROW: [usize; LANES] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

    /// The strides 8, 4, 2 and 1 of the Hadamard butterfly inside a vector.
    fn butterfly(self, v: Self::Floats) -> Self::Floats;

    /// Rounds to integers, half to even, adds `offset`, and clamps to `0..=255`. Magnitudes are below `2^30`, or, if
    /// `offset` is not 0, round to at most `offset`, which is at most 127.
    fn round_to_codes(self, v: [Self::Floats; 4], offset: i32) -> Self::Codes;
    /// The smaller of each code and `2^width - 1`, `width` up to 8.
    fn clamp_codes(self, width: u32, codes: Self::Codes) -> Self::Codes;
    fn codes_to_floats(self, codes: Self::Codes) -> [Self::Floats; 4];

    /// Writes the bit stream of codes below `2^width`, `8 width` bytes, `width` from 2 to 8, to the front of `out`.
    /// What `out` holds behind them may change, up to [`PACK_ROOM`] bytes from its start.
    ///
    /// # Panics
    /// If `out` is shorter than the stream.
    fn pack(self, width: u32, codes: Self::Codes, out: &mut [u8]);

    /// The inverse of [`Simd::pack`]: reads the front of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than the stream.
    fn unpack(self, width: u32, bytes: &[u8]) -> Self::Codes;

    /// Rounds to integers, half to even, adds `offset`, and writes the bit stream of the sums, which must be codes below
    /// `2^width`, `8 width` bytes, `width` from 9 to 16, to the front of `out`. What `out` holds behind them may change,
    /// up to [`WIDE_ROOM`] bytes from its start.
    ///
    /// # Panics
    /// If `out` is shorter than the stream.
    fn pack_wide(self, width: u32, v: [Self::Floats; 4], offset: i32, out: &mut [u8]);

    /// The codes of a stream as [`Simd::pack_wide`] writes them: reads the front of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than the stream.
    fn unpack_wide(self, width: u32, bytes: &[u8]) -> [Self::Floats; 4];

    /// `a * b + c`, fused or in two operations, whichever is faster: only for operands of which both give the same bits,
    /// mostly since the product is exact, or where nobody sees the difference.
    #[inline(always)]
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        self.add(self.mul(a, b), c)
    }

    /// `code * step + zero` of the codes that [`Simd::unpack`] would read. The products must be exact, so that it does not
    /// matter whether the sum is fused.
    ///
    /// # Panics
    /// As [`Simd::unpack`].
    #[inline(always)]
    fn dequantize(
        self,
        width: u32,
        bytes: &[u8],
        step: Self::Floats,
        zero: Self::Floats,
    ) -> [Self::Floats; 4] {
        let mut values = self.codes_to_floats(self.unpack(width, bytes));
        for value in &mut values {
            *value = self.mul_add(*value, step, zero);
        }
        values
    }
}

// Below, and in all kernels, there are loops where a closure would be shorter: a closure is a function of its own, which
// is compiled without the instructions unless it happens to be inlined first.

/// How two partial results of `N` quantities become one.
pub(crate) trait Combine<const N: usize> {
    fn combine<S: Simd>(simd: S, a: [S::Floats; N], b: [S::Floats; N]) -> [S::Floats; N];
}

/// Combines the lanes of sixteen vectors of `N` quantities each, every one in the order of `fold_lanes`; lane `j` of the
/// result belongs to vector `j`.
#[inline(always)]
pub(crate) fn fold_rows<C: Combine<N>, S: Simd, const N: usize>(
    simd: S,
    rows: &[[S::Floats; N]; LANES],
) -> [S::Floats; N] {
    // Every row is overwritten; the first serves as a value.
    let mut folded = [rows[0]; LANES / 2];
    for (i, folded) in folded.iter_mut().enumerate() {
        let [first, second] = [S::TILE_OF_ROW[2 * i], S::TILE_OF_ROW[2 * i + 1]];
        *folded = fold_pair::<C, S, N, 8>(simd, rows[first], rows[second]);
    }
    for i in 0..4 {
        folded[i] = fold_pair::<C, S, N, 4>(simd, folded[2 * i], folded[2 * i + 1]);
    }
    for i in 0..2 {
        folded[i] = fold_pair::<C, S, N, 2>(simd, folded[2 * i], folded[2 * i + 1]);
    }
    fold_pair::<C, S, N, 1>(simd, folded[0], folded[1])
}

#[inline(always)]
fn fold_pair<C: Combine<N>, S: Simd, const N: usize, const W: usize>(
    simd: S,
    mut a: [S::Floats; N],
    mut b: [S::Floats; N],
) -> [S::Floats; N] {
    for (a, b) in a.iter_mut().zip(&mut b) {
        (*a, *b) = simd.halves::<W>(*a, *b);
    }
    C::combine(simd, a, b)
}
