use half::f16;

use super::layout::{Layout, Sections};
use super::{OUTLIER, Tah, allocate};
use crate::element::Element;
use crate::kernel::{bits, entropy, hadamard, tile};
use crate::scale::MessageScale;

/// `rho` of equation 3. The tile was scaled by the message scale.
const RHO: f32 = 1e-12;

impl Tah {
    /// Writes the block of one sample, `x: [tokens, channels]`.
    pub(super) fn encode_sample<E: Element>(
        &mut self,
        layout: &Layout,
        x: &[E],
        scale: MessageScale,
        out: Sections<&mut [u8]>,
    ) {
        self.allocate(layout, x, scale, out.map);
        let (zeros, scales) = (out.zeros.as_chunks_mut().0, out.scales.as_chunks_mut().0);
        let mut codes = out.codes;
        for (token, x) in x.chunks_exact(layout.channels).enumerate() {
            load(x, scale, &mut self.token);
            for (i, values) in self.token.chunks_exact_mut(self.settings.tile).enumerate() {
                let index = token * layout.tiles_per_token + i;
                let width = layout.width(out.map, index);
                let tile = quantize(values, self.settings.outlier_ratio, width, &mut self.codes);
                zeros[index] = tile.zero.to_le_bytes();
                scales[index] = (tile.scale.to_bits() | if tile.outlier { OUTLIER } else { 0 }).to_le_bytes();
                self.pivots[index] = tile.pivot;
                let packed;
                (packed, codes) = codes.split_at_mut(bits::packed_len(self.codes.len(), width));
                bits::pack(width, &self.codes, packed);
            }
        }
        codes.fill(0);
        bits::pack(self.settings.tile.ilog2(), &self.pivots, out.pivots);
    }

    /// Fills the width map of one sample.
    fn allocate<E: Element>(&mut self, layout: &Layout, x: &[E], scale: MessageScale, map: &mut [u8]) {
        self.ranks.clear();
        for x in x.chunks_exact(layout.channels) {
            load(x, scale, &mut self.token);
            for values in self.token.chunks(layout.tiles_per_allocation * self.settings.tile) {
                self.ranks.push(allocate::rank(entropy::entropy(values), self.ranks.len()));
            }
        }
        allocate::mark_high(&mut self.ranks, layout.high, map);
    }
}

/// One token's channels as scaled `f32`, then zeros.
fn load<E: Element>(x: &[E], scale: MessageScale, token: &mut [f32]) {
    let (values, padding) = token.split_at_mut(x.len());
    E::widen(x, values);
    scale.apply(values);
    padding.fill(0.0);
}

/// The parameters of one quantized tile.
struct Quantized {
    zero: f16,
    /// Not negative.
    scale: f16,
    outlier: bool,
    /// 0 if the tile is no outlier tile.
    pivot: u16,
}

/// Transforms the tile if it has an outlier (equations 3 and 4) and fills `codes`, `width` bits each.
fn quantize(values: &mut [f32], outlier_ratio: f32, width: u32, codes: &mut [u16]) -> Quantized {
    let (first, second) = tile::top_two(values);
    let outlier = first > outlier_ratio * (second + RHO);
    let mut pivot = 0;
    if outlier {
        pivot =
            values.iter().position(|value| value.abs() == first).expect("the maximum is one of the values");
        values.swap(0, pivot);
        hadamard::transform(values);
    }
    let (min, max) = tile::range(values);
    let largest = (1 << width) - 1;
    let zero = f16::from_f32(min + 0.0); // -0 + 0 is +0: which zero was found first does not matter
    // Where `zero` was rounded up to the maximum or above, the tile is constant to half precision. A comparison, since
    // the larger of two zeros may have either sign, and the scale's sign is the outlier flag.
    let extent = if max > f32::from(zero) { max - f32::from(zero) } else { 0.0 };
    let scale = f16::from_f32(extent / f32::from(largest));
    tile::quantize(values, zero.into(), scale.into(), largest, codes);
    Quantized { zero, scale, outlier, pivot: pivot as u16 }
}
