//! NEON dot products: 16 products an instruction, signed by signed.

#![expect(unsafe_code, reason = "vector instructions")]
#![allow(
    clippy::wildcard_imports,
    reason = "the intrinsics of one instruction set; not linted in test builds"
)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Microkernel, Side};
use crate::simd::neon::Neon;

const ROWS: usize = 8;
const COLUMNS: usize = 12;
/// Words of a register.
const LANES: usize = 4;

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeonDot(pub(crate) Neon);

impl Microkernel for NeonDot {
    const A: Side = Side { lanes: ROWS, interleave: 1, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 0 };
    const ELEMENTS: usize = 4;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let acc = acc.as_chunks_mut().0.try_into().expect("a tile of the output");
        assert_eq!(a.len(), b.len(), "panels of one depth");
        // SAFETY: `self` holds a `Neon`, which `detect` alone makes where the features are there.
        unsafe { accumulate(a, b, acc) }
    }
}

/// The word in one lane of `$a` with the four words of each register of `$b`. The intrinsic is not stable.
macro_rules! dot_lane {
    ($sums:expr, $b:expr, $a:expr, $lane:literal) => {
        for (sum, b) in $sums.iter_mut().zip($b) {
            // SAFETY: the enclosing function has the feature; the instruction works on the three registers alone.
            unsafe {
                asm!(
                    concat!("sdot {sum:v}.4s, {b:v}.16b, {a:v}.4b[", $lane, "]"),
                    sum = inout(vreg) *sum,
                    b = in(vreg) b,
                    a = in(vreg) $a,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
    };
}

#[target_feature(enable = "neon,dotprod")]
fn accumulate(a: &[[u32; ROWS]], b: &[[u32; COLUMNS]], acc: &mut [[i32; COLUMNS]; ROWS]) {
    let mut sums = [[vdupq_n_s32(0); COLUMNS / LANES]; ROWS];
    for (a, b) in a.iter().zip(b) {
        let b = [load(b, 0), load(b, 4), load(b, 8)];
        for (half, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let a = load(a, half * LANES);
            dot_lane!(sums[0], b, a, 0);
            dot_lane!(sums[1], b, a, 1);
            dot_lane!(sums[2], b, a, 2);
            dot_lane!(sums[3], b, a, 3);
        }
    }
    for (sums, acc) in sums.into_iter().zip(acc) {
        for (sum, acc) in sums.into_iter().zip(acc.as_chunks_mut::<LANES>().0) {
            // SAFETY: 16 bytes are read and written, the chunk's size.
            unsafe { vst1q_s32(acc.as_mut_ptr(), vaddq_s32(vld1q_s32(acc.as_ptr()), sum)) }
        }
    }
}

#[target_feature(enable = "neon,dotprod")]
fn load(words: &[u32], first: usize) -> uint32x4_t {
    let words = &words[first..first + LANES];
    // SAFETY: 16 bytes are read, the slice's size.
    unsafe { vld1q_u32(words.as_ptr()) }
}
