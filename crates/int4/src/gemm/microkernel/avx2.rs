//! AVX2 has no dot product of bytes with 32-bit sums. Two substitutes:
//!
//! - 4-bit codes: `vpmaddubsw` adds two products in 16 bits. With the right operand's codes plus 8, a pair of products lies within
//!   `-240..=240`, and 128 of them still fit; then they are widened.
//! - 8-bit codes, as 16-bit integers: `vpmaddwd` adds two products in 32 bits.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]

use std::arch::x86_64::*;

use super::{Microkernel, Side};
use crate::simd::avx2::Avx2;

const ROWS: usize = 6;
const COLUMNS: usize = 16;
/// Columns of a register.
const LANES: usize = 8;
/// Words of the depth whose pairs of products can be added up in 16 bits.
const NARROW: usize = 128;

type Tile = [[i32; COLUMNS]; ROWS];

/// Bytes; the right operand's are unsigned and below 16.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2Nibbles(pub(crate) Avx2);

impl Microkernel for Avx2Nibbles {
    const A: Side = Side { lanes: ROWS, interleave: 1, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 8 };
    const ELEMENTS: usize = 4;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let acc: &mut Tile = acc.as_chunks_mut().0.try_into().expect("a tile of the output");
        assert_eq!(a.len(), b.len(), "panels of one depth");
        for (a, b) in a.chunks(NARROW).zip(b.chunks(NARROW)) {
            // SAFETY: `self` holds an `Avx2`, which `detect` alone makes where the feature is there.
            unsafe { accumulate_nibbles(a, b, acc) }
        }
    }
}

/// 16-bit integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2Bytes(pub(crate) Avx2);

impl Microkernel for Avx2Bytes {
    const A: Side = Side { lanes: ROWS, interleave: 1, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 0 };
    const ELEMENTS: usize = 2;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let acc = acc.as_chunks_mut().0.try_into().expect("a tile of the output");
        assert_eq!(a.len(), b.len(), "panels of one depth");
        // SAFETY: `self` holds an `Avx2`, which `detect` alone makes where the feature is there.
        unsafe { accumulate_bytes(a, b, acc) }
    }
}

/// At most [`NARROW`] words.
#[target_feature(enable = "avx2")]
fn accumulate_nibbles(a: &[[u32; ROWS]], b: &[[u32; COLUMNS]], acc: &mut Tile) {
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    for (a, b) in a.iter().zip(b) {
        let b = load(b);
        for (sums, &a) in sums.iter_mut().zip(a) {
            let a = _mm256_set1_epi32(a.cast_signed());
            sums[0] = _mm256_add_epi16(sums[0], _mm256_maddubs_epi16(b[0], a));
            sums[1] = _mm256_add_epi16(sums[1], _mm256_maddubs_epi16(b[1], a));
        }
    }
    let ones = _mm256_set1_epi16(1);
    let widened = sums.map(|[low, high]| [_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones)]);
    add(&widened, acc);
}

#[target_feature(enable = "avx2")]
fn accumulate_bytes(a: &[[u32; ROWS]], b: &[[u32; COLUMNS]], acc: &mut Tile) {
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    for (a, b) in a.iter().zip(b) {
        let b = load(b);
        for (sums, &a) in sums.iter_mut().zip(a) {
            let a = _mm256_set1_epi32(a.cast_signed());
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(b[0], a));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(b[1], a));
        }
    }
    add(&sums, acc);
}

#[target_feature(enable = "avx2")]
fn load(words: &[u32; COLUMNS]) -> [__m256i; 2] {
    let (first, second) = words.split_at(LANES);
    // SAFETY: 32 bytes are read from each half of the 64.
    unsafe { [_mm256_loadu_si256(first.as_ptr().cast()), _mm256_loadu_si256(second.as_ptr().cast())] }
}

#[target_feature(enable = "avx2")]
fn add(sums: &[[__m256i; 2]; ROWS], acc: &mut Tile) {
    for (sums, acc) in sums.iter().zip(acc) {
        for (&sum, acc) in sums.iter().zip(acc.as_chunks_mut::<LANES>().0) {
            // SAFETY: 32 bytes are read and written, the chunk's size.
            unsafe {
                let before = _mm256_loadu_si256(acc.as_ptr().cast());
                _mm256_storeu_si256(acc.as_mut_ptr().cast(), _mm256_add_epi32(before, sum));
            }
        }
    }
}
