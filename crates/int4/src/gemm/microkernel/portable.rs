//! Plain code.

use super::{Microkernel, Side};

const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Pairs of 16-bit integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortableWords;

impl Microkernel for PortableWords {
    const A: Side = Side { lanes: ROWS, interleave: 1, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 0 };
    const ELEMENTS: usize = 2;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks::<ROWS>().0, b.as_chunks::<COLUMNS>().0);
        let acc = acc.as_chunks_mut::<COLUMNS>().0;
        assert!(a.len() == b.len() && acc.len() == ROWS);
        for (a, b) in a.iter().zip(b) {
            for (acc, &a) in acc.iter_mut().zip(a) {
                for (acc, &b) in acc.iter_mut().zip(b) {
                    *acc = acc.wrapping_add(dot(a, b));
                }
            }
        }
    }
}

fn dot(a: u32, b: u32) -> i32 {
    let low = |word: u32| i32::from((word as u16).cast_signed());
    let high = |word: u32| word.cast_signed() >> 16;
    low(a) * low(b) + high(a) * high(b)
}
