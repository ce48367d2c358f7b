//! The innermost loop of the products: one tile of the output over a stretch of the depth.
//!
//! A microkernel reads both operands from *panels*: the codes of [`Side::lanes`] outputs, in words of 32 bits. A word has
//! four consecutive elements of the depth as bytes or two as 16-bit integers, [`Microkernel::ELEMENTS`]. The word of depth `g` and lane
//! `l` lies at `(g / interleave * lanes + l) * interleave + g % interleave`: lane by lane for an interleave of 1.
//!
//! Sums are exact: they wrap modulo 2^32, and the caller keeps the true ones inside.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod portable;

/// How wide the operands of a product are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Both have 4-bit codes.
    Nibbles,
    /// At least one has 8-bit codes.
    Bytes,
}

/// How a microkernel wants the panels of one operand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Outputs of a panel.
    pub(crate) lanes: usize,
    /// Words of a lane that lie next to each other.
    pub(crate) interleave: usize,
    /// What is added to every code.
    pub(crate) offset: i32,
}

/// One instruction set's innermost loop.
pub(crate) trait Microkernel: Copy + Send + Sync {
    /// The left operand. Its offset is 0.
    const A: Side;
    /// The right operand.
    const B: Side;
    /// Elements of a word, 4 or 2.
    const ELEMENTS: usize;

    /// `acc[i, j] += sum over the depth of a[i] b[j]`, `acc` being `[A.lanes, B.lanes]`, row-major. The panels have the same
    /// depth, a multiple of both interleaves.
    ///
    /// # Panics
    /// If a length is wrong.
    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]);
}

/// What to do with a microkernel, once it is chosen.
pub(crate) trait UseMicrokernel {
    type Output;

    fn with<M: Microkernel>(self, microkernel: M) -> Self::Output;
}
