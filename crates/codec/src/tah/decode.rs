use half::f16;

use super::layout::{Layout, Sections};
use super::{OUTLIER, Tah};
use crate::DecodeError;
use crate::element::Element;
use crate::kernel::{bits, hadamard, tile};
use crate::scale::MessageScale;

impl Tah {
    /// Reads the block of sample number `sample` into `out: [tokens, channels]`.
    pub(super) fn decode_sample<E: Element>(
        &mut self,
        layout: &Layout,
        sample: usize,
        block: Sections<&[u8]>,
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        check_map(layout, sample, block.map)?;
        let pivot_bits = self.settings.tile.ilog2();
        bits::check_padding(layout.tiles, pivot_bits, block.pivots, "pivot")?;
        bits::unpack(pivot_bits, block.pivots, &mut self.pivots);

        let (zeros, scales) = (block.zeros.as_chunks().0, block.scales.as_chunks().0);
        let mut codes = block.codes;
        for (token, out) in out.chunks_exact_mut(layout.channels).enumerate() {
            for (i, values) in self.token.chunks_exact_mut(self.settings.tile).enumerate() {
                let index = token * layout.tiles_per_token + i;
                let parameters = Parameters::read(zeros[index], scales[index], self.pivots[index])
                    .map_err(|what| DecodeError::Parameter { what, tile: sample * layout.tiles + index })?;
                let width = layout.width(block.map, index);
                let packed;
                (packed, codes) = codes.split_at(bits::packed_len(self.codes.len(), width));
                bits::unpack(width, packed, &mut self.codes);
                parameters.dequantize(&self.codes, values);
            }
            let values = &mut self.token[..layout.channels];
            scale.undo(values);
            E::narrow(values, out);
        }
        if codes.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::UnusedBits { section: "code" });
        }
        Ok(())
    }
}

/// The map must mark as many tiles as the encoder marks: the places of all codes depend on it.
fn check_map(layout: &Layout, sample: usize, map: &[u8]) -> Result<(), DecodeError> {
    bits::check_padding(layout.allocations, 1, map, "width map")?;
    let got = map.iter().map(|byte| byte.count_ones() as usize).sum();
    if got == layout.high {
        Ok(())
    } else {
        Err(DecodeError::WidthMap { sample, expected: layout.high, got })
    }
}

/// What the wire says about one tile, checked.
struct Parameters {
    zero: f32,
    step: f32,
    /// Set for an outlier tile.
    pivot: Option<usize>,
}

impl Parameters {
    /// The error names the invalid parameter.
    fn read(zero: [u8; 2], scale: [u8; 2], pivot: u16) -> Result<Self, &'static str> {
        let zero = f16::from_le_bytes(zero);
        let scale = u16::from_le_bytes(scale);
        let step = f16::from_bits(scale & !OUTLIER);
        if !zero.is_finite() {
            return Err("zero point");
        }
        if !step.is_finite() {
            return Err("scale");
        }
        let pivot = match (scale & OUTLIER != 0, pivot) {
            (true, pivot) => Some(usize::from(pivot)),
            (false, 0) => None,
            (false, _) => return Err("pivot"),
        };
        Ok(Self { zero: zero.into(), step: step.into(), pivot })
    }

    fn dequantize(&self, codes: &[u16], values: &mut [f32]) {
        tile::dequantize(codes, self.zero, self.step, values);
        if let Some(pivot) = self.pivot {
            hadamard::transform(values);
            values.swap(0, pivot);
        }
    }
}
