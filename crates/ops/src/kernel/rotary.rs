//! Rotary position embedding (Su et al., 2021, eq. 34) in the half-split layout of Hugging Face files.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::lanes::{self, Lanewise};

/// Rows that one task turns.
const ROWS: usize = 32;

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Forward,
    /// The inverse, which is the transpose: the backward pass.
    Back,
}

/// The rows of an angle table that a matrix uses: row `i` has position `start + i % tokens`.
#[derive(Clone, Copy)]
pub(crate) struct Angles<'a> {
    pub(crate) cos: &'a [f32],
    pub(crate) sin: &'a [f32],
    pub(crate) half: usize,
    pub(crate) tokens: usize,
    pub(crate) start: usize,
}

/// Turns each pair `(x_j, x_{j + half})` of each head of each row of `width` values.
pub(crate) fn rotate(values: &mut [f32], width: usize, angles: Angles<'_>, turn: Turn) {
    values.par_chunks_mut(ROWS * width).enumerate().for_each(|(piece, rows)| {
        Arch::new().dispatch(Piece { rows, first: piece * ROWS, width, angles, turn });
    });
}

struct Piece<'a> {
    rows: &'a mut [f32],
    first: usize,
    width: usize,
    angles: Angles<'a>,
    turn: Turn,
}

impl WithSimd for Piece<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Angles { cos, sin, half, tokens, start } = self.angles;
        for (i, row) in self.rows.chunks_mut(self.width).enumerate() {
            let at = (start + (self.first + i) % tokens) * half;
            let (cos, sin) = (&cos[at..at + half], &sin[at..at + half]);
            for head in row.chunks_mut(2 * half) {
                let (a, b) = head.split_at_mut(half);
                lanes::apply(simd, self.turn, [cos, sin], [a, b]);
            }
        }
    }
}

impl Lanewise<2, 2> for Turn {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [cos, sin]: [S::f32s; 2], [a, b]: [S::f32s; 2]) -> [S::f32s; 2] {
        let sin = if self == Turn::Forward { sin } else { simd.neg_f32s(sin) };
        let first = simd.sub_f32s(simd.mul_f32s(a, cos), simd.mul_f32s(b, sin));
        [first, simd.add_f32s(simd.mul_f32s(b, cos), simd.mul_f32s(a, sin))]
    }
}
