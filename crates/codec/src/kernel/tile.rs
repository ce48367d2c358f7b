//! Quantization tiles (TAH-Quant, sections 3.2 and 3.3): the outlier test, the transform, and the asymmetric quantizer,
//! on runs of tiles.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod portable;
mod simd_decode;
mod simd_encode;

use super::{BLOCK, Kernel, WHOLE};
use crate::element::Element;
use crate::scale::{Factors, MessageScale};
use crate::simd::Simd;

/// `rho` of equation 3. Tiles are scaled by the message scale.
const RHO: f32 = 1e-12;

/// The bit of a scale on the wire that marks an outlier tile, a float's sign.
pub(crate) const OUTLIER: u16 = 0x8000;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Values of scratch that a kernel needs, aligned or not.
pub(crate) const fn scratch_len(tile: usize) -> usize {
    2 * BLOCK * tile + LINE / size_of::<f32>()
}

/// The part of a kernel's scratch that begins with a cache line, so that no vector lies in two of them.
fn aligned(scratch: &mut [f32]) -> &mut [f32] {
    let start = scratch.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
    &mut scratch[start..]
}

/// Quantizes tiles. With `y` the scaled values of one:
///
/// 1. `a1 >= a2` are the two largest of `|y|`. If `a1 > outlier_ratio * (a2 + 1e-12)`, the first value of magnitude `a1`
///    is the pivot; it changes places with the first value of the tile, and the tile is transformed
///    ([`hadamard`](super::hadamard)).
/// 2. `zero = f16(min y + 0)`, `step = f16(max(max y - zero, +0) / (2^width - 1))`, `r = 1 / step`, or 0 if `step` is 0.
/// 3. `code = round_half_even(clamp((y - zero) * r, 0, 2^width - 1))`.
pub(crate) struct Encode<'a, E> {
    /// Tiles, one behind the other.
    pub(crate) x: &'a [E],
    /// Values of a tile.
    pub(crate) tile: usize,
    pub(crate) scale: Factors,
    pub(crate) outlier_ratio: f32,
    /// Bits of a code, one entry a tile, as in all that follow.
    pub(crate) widths: &'a [u8],
    pub(crate) zeros: &'a mut [[u8; 2]],
    pub(crate) scales: &'a mut [[u8; 2]],
    /// 0 for a tile that is no outlier tile.
    pub(crate) pivots: &'a mut [u16],
    /// The codes of all tiles, exactly.
    pub(crate) codes: &'a mut [u8],
    /// [`scratch_len`] values.
    pub(crate) scratch: &'a mut [f32],
}

impl<E: Element> Kernel for Encode<'_, E> {
    type Output = ();

    fn portable(self) {
        portable::encode(self);
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        let Some(scale) = self.scale.single() else { return self.portable() };
        // The constants make copies without loops over the parts of a tile.
        match self.tile {
            16 => simd_encode::encode(simd, self, 16, scale),
            32 => simd_encode::encode(simd, self, 32, scale),
            WHOLE => simd_encode::encode(simd, self, WHOLE, scale),
            tile if tile.is_multiple_of(WHOLE) => simd_encode::encode(simd, self, tile, scale),
            _ => self.portable(),
        }
    }
}

/// The inverse, on checked parameters: `y = code * step + zero`, rounded after each operation; of an outlier tile the
/// transform, then the change of places; then the message scale.
pub(crate) struct Decode<'a, E> {
    pub(crate) zeros: &'a [[u8; 2]],
    pub(crate) scales: &'a [[u8; 2]],
    pub(crate) pivots: &'a [u16],
    pub(crate) widths: &'a [u8],
    pub(crate) codes: &'a [u8],
    pub(crate) tile: usize,
    pub(crate) scale: MessageScale,
    pub(crate) out: &'a mut [E],
    /// [`scratch_len`] values.
    pub(crate) scratch: &'a mut [f32],
}

impl<E: Element> Kernel for Decode<'_, E> {
    type Output = ();

    fn portable(self) {
        portable::decode(self);
    }

    #[inline(always)]
    fn simd<S: Simd>(self, simd: S) {
        // The constants make copies without loops over the parts of a tile.
        match self.tile {
            16 => simd_decode::decode(simd, self, 16),
            32 => simd_decode::decode(simd, self, 32),
            WHOLE => simd_decode::decode(simd, self, WHOLE),
            tile if tile.is_multiple_of(WHOLE) => simd_decode::decode(simd, self, tile),
            _ => self.portable(),
        }
    }
}
