//! The inner loops. Each has a dispatcher, the file named after it, which states what every implementation
//! computes to the bit, and a folder with one file per instruction set. All arithmetic is `f32` without fused
//! multiply-add, and sums run over [`LANES`] interleaved lanes and end in one fixed tree, so that every
//! implementation gives the same bytes. `docs/format.md` is the normative text.

pub(crate) mod bits;
pub(crate) mod entropy;
pub(crate) mod group;
pub(crate) mod hadamard;
pub(crate) mod ln;
pub(crate) mod scan;
pub(crate) mod tile;

/// Interleaved lanes of a sum: element `i` belongs to lane `i % LANES`.
pub(crate) const LANES: usize = 16;

/// Combines the lanes: `j` with `j + 8`, then with `j + 4`, `j + 2` and `j + 1`.
#[inline]
fn fold_lanes<T: Copy>(mut lanes: [T; LANES], combine: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = combine(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// What to divide by when quantizing with this step: the step, or infinity for 0, so that every quotient is a
/// number and the codes of a group without extent are those of 0.
fn divisor(step: f32) -> f32 {
    if step == 0.0 { f32::INFINITY } else { step }
}
