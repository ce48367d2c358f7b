use half::f16;

use super::layout::{Layout, Sections};
use super::{SampleCoder, Scratch};
use crate::element::Element;
use crate::kernel::bits;
use crate::kernel::tile::{self, OUTLIER};
use crate::scale::MessageScale;
use crate::threads::Workers;
use crate::{DecodeError, Isa, TahSettings};

impl SampleCoder {
    /// Refuses a block that no encoder writes; otherwise unpacks the pivots and widths of its tiles.
    pub(super) fn check_sample(
        &mut self,
        layout: &Layout,
        sample: usize,
        block: Sections<&[u8]>,
    ) -> Result<(), DecodeError> {
        check_map(layout, sample, block.map)?;
        let pivot_bits = self.settings.tile.ilog2();
        bits::check_padding(layout.tiles, pivot_bits, block.pivots, "pivot")?;
        bits::unpack(pivot_bits, block.pivots, &mut self.pivots);
        layout.widths(block.map, &mut self.widths);
        check_parameters(block.zeros.as_chunks().0, block.scales.as_chunks().0, &self.pivots)
            .map_err(|(what, tile)| DecodeError::Parameter { what, tile: sample * layout.tiles + tile })?;
        let unused = &block.codes[self.settings.codes_len(&self.widths)..];
        if unused.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::UnusedBits { section: "code" });
        }
        Ok(())
    }

    /// Reads a checked block into `out: [tokens, channels]`, each thread `tokens` tokens.
    pub(super) fn decode_sample<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Layout,
        tokens: usize,
        block: Sections<&[u8]>,
        scale: MessageScale,
        out: &mut [E],
    ) {
        let decoder = Decoder { isa: workers.isa, layout, settings: self.settings, scale };
        let tiles = tokens * layout.tiles_per_token;
        let mut codes = block.codes;
        let zeros = block.zeros.as_chunks().0.chunks(tiles);
        let scales = block.scales.as_chunks().0.chunks(tiles);
        let sections = zeros.zip(scales).zip(self.pivots.chunks(tiles)).zip(self.widths.chunks(tiles));
        let parts = sections.map(|(((zeros, scales), pivots), widths)| {
            let part;
            (part, codes) = codes.split_at(self.settings.codes_len(widths));
            Part { zeros, scales, pivots, widths, codes: part }
        });
        let outs = out.chunks_mut(tokens * layout.channels);
        workers.for_each(outs.zip(parts).zip(&mut self.scratch), |((out, part), scratch)| {
            decoder.tiles(part, out, scratch);
        });
    }
}

/// What all threads know.
struct Decoder<'a> {
    isa: Isa,
    layout: &'a Layout,
    settings: TahSettings,
    scale: MessageScale,
}

/// What a thread reads, one entry a tile in each section.
#[derive(Clone, Copy)]
struct Part<'a> {
    zeros: &'a [[u8; 2]],
    scales: &'a [[u8; 2]],
    pivots: &'a [u16],
    widths: &'a [u8],
    codes: &'a [u8],
}

impl Decoder<'_> {
    /// Every tile of some tokens.
    fn tiles<E: Element>(&self, mut part: Part<'_>, out: &mut [E], scratch: &mut Scratch) {
        if self.layout.channels.is_multiple_of(self.settings.tile) {
            return self.run(part, out, &mut scratch.tiles);
        }
        for out in out.chunks_exact_mut(self.layout.channels) {
            let token;
            (token, part) = part.split_at(self.layout.tiles_per_token, &self.settings);
            self.run(token, &mut scratch.token[..], &mut scratch.tiles);
            E::narrow(&scratch.token[..out.len()], out);
        }
    }

    fn run<E: Element>(&self, part: Part<'_>, out: &mut [E], scratch: &mut [f32]) {
        let Part { zeros, scales, pivots, widths, codes } = part;
        let (tile, scale) = (self.settings.tile, self.scale);
        self.isa.run(tile::Decode { zeros, scales, pivots, widths, codes, tile, scale, out, scratch });
    }
}

impl Part<'_> {
    fn split_at(self, tiles: usize, settings: &TahSettings) -> (Self, Self) {
        let (zeros, zeros_behind) = self.zeros.split_at(tiles);
        let (scales, scales_behind) = self.scales.split_at(tiles);
        let (pivots, pivots_behind) = self.pivots.split_at(tiles);
        let (widths, widths_behind) = self.widths.split_at(tiles);
        let (codes, codes_behind) = self.codes.split_at(settings.codes_len(widths));
        (
            Self { zeros, scales, pivots, widths, codes },
            Self {
                zeros: zeros_behind,
                scales: scales_behind,
                pivots: pivots_behind,
                widths: widths_behind,
                codes: codes_behind,
            },
        )
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

/// The error names the first invalid parameter and its tile.
fn check_parameters(
    zeros: &[[u8; 2]],
    scales: &[[u8; 2]],
    pivots: &[u16],
) -> Result<(), (&'static str, usize)> {
    let tiles =
        || zeros.iter().zip(scales).zip(pivots).map(|((zero, scale), pivot)| fault(*zero, *scale, *pivot));
    // All of them, without a way out: a loop that the compiler can vectorize.
    if tiles().fold(0, |all, fault| all | fault) == 0 {
        return Ok(());
    }
    let (tile, fault) = tiles().enumerate().find(|(_, fault)| *fault != 0).expect("one was found");
    let what = [(ZERO_FAULT, "zero point"), (SCALE_FAULT, "scale"), (PIVOT_FAULT, "pivot")];
    let (_, what) = what.into_iter().find(|(bit, _)| fault & bit != 0).expect("one of the three");
    Err((what, tile))
}

const ZERO_FAULT: u16 = 1;
const SCALE_FAULT: u16 = 2;
const PIVOT_FAULT: u16 = 4;

/// What is wrong with a tile's parameters, as bits.
fn fault(zero: [u8; 2], scale: [u8; 2], pivot: u16) -> u16 {
    let not_finite = |bits: u16| bits & f16::INFINITY.to_bits() == f16::INFINITY.to_bits();
    let scale = u16::from_le_bytes(scale);
    u16::from(not_finite(u16::from_le_bytes(zero))) * ZERO_FAULT
        + u16::from(not_finite(scale)) * SCALE_FAULT
        + u16::from(scale & OUTLIER == 0 && pivot != 0) * PIVOT_FAULT
}
