//! AVX-512 VNNI: 64 products an instruction.
//!
//! ```text
//! for each word of the depth:
//!     b0, b1 = 32 columns, codes + 128          one word a lane, unsigned
//!     for i in 0..14:
//!         acc[i] += dot4(b, broadcast a[i])     vpdpbusd: unsigned times signed
//! ```
//!
//! 28 of the 32 registers are sums. What the offset of 128 adds is 128 times the sum of the row of `a`, which the caller takes off.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]

use std::arch::x86_64::*;

use super::{Microkernel, Side};
use crate::simd::avx512::Avx512;

const ROWS: usize = 14;
const COLUMNS: usize = 32;
/// Columns of a register.
const LANES: usize = 16;

/// Bytes; the right operand's are unsigned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vnni(pub(crate) Avx512);

impl Microkernel for Vnni {
    const A: Side = Side { lanes: ROWS, interleave: 1, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 128 };
    const ELEMENTS: usize = 4;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let acc = acc.as_chunks_mut().0.try_into().expect("a tile of the output");
        assert_eq!(a.len(), b.len(), "panels of one depth");
        // SAFETY: `self` holds an `Avx512`, which `detect` alone makes where every feature is there.
        unsafe { accumulate(a, b, acc) }
    }
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn accumulate(a: &[[u32; ROWS]], b: &[[u32; COLUMNS]], acc: &mut [[i32; COLUMNS]; ROWS]) {
    let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
    for (a, b) in a.iter().zip(b) {
        let (first, second) = b.split_at(LANES);
        // SAFETY: 64 bytes are read from each half of the 128.
        let b = unsafe {
            [_mm512_loadu_epi32(first.as_ptr().cast()), _mm512_loadu_epi32(second.as_ptr().cast())]
        };
        for (sums, &a) in sums.iter_mut().zip(a) {
            let a = _mm512_set1_epi32(a.cast_signed());
            sums[0] = _mm512_dpbusd_epi32(sums[0], b[0], a);
            sums[1] = _mm512_dpbusd_epi32(sums[1], b[1], a);
        }
    }
    for (sums, acc) in sums.into_iter().zip(acc) {
        for (sum, acc) in sums.into_iter().zip(acc.as_chunks_mut::<LANES>().0) {
            // SAFETY: 64 bytes are read and written, the chunk's size.
            unsafe {
                let before = _mm512_loadu_epi32(acc.as_ptr());
                _mm512_storeu_epi32(acc.as_mut_ptr(), _mm512_add_epi32(before, sum));
            }
        }
    }
}
