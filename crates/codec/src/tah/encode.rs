use super::layout::{Layout, Sections};
use super::{SampleCoder, Scratch, allocate};
use crate::element::Element;
use crate::kernel::entropy::{self, Entropies};
use crate::kernel::{bits, tile};
use crate::scale::{Factors, MessageScale};
use crate::threads::Workers;
use crate::{Isa, Selection, TahSettings};

impl SampleCoder {
    /// Writes the block of one sample, `x: [tokens, channels]`, each thread `tokens` tokens.
    pub(super) fn encode_sample<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Layout,
        tokens: usize,
        x: &[E],
        scale: MessageScale,
        out: Sections<&mut [u8]>,
    ) {
        let encoder = Encoder { isa: workers.isa, layout, settings: self.settings, scale: scale.scaling() };
        let per_part = tokens * layout.channels;

        if layout.high == 0 || layout.high == layout.allocations {
            allocate::mark_all(layout.allocations, layout.high > 0, out.map);
        } else if self.settings.selection == Selection::Even {
            allocate::mark_evenly(layout.allocations, layout.high, out.map);
        } else {
            let entropies = self.entropies.chunks_mut(tokens * layout.allocations_per_token());
            let parts = x.chunks(per_part).zip(entropies).zip(&mut self.scratch);
            workers.for_each(parts, |((x, entropies), scratch)| encoder.estimate(x, entropies, scratch));
            let estimates = encoder.estimates(&self.entropies);
            self.ranking.mark_high(estimates, layout.high, out.map, |tile| encoder.entropy(x, tile));
        }
        layout.widths(out.map, &mut self.widths);

        let tiles = tokens * layout.tiles_per_token;
        let mut codes = out.codes;
        let zeros = out.zeros.as_chunks_mut().0.chunks_mut(tiles);
        let scales = out.scales.as_chunks_mut().0.chunks_mut(tiles);
        let sections = zeros.zip(scales).zip(self.pivots.chunks_mut(tiles)).zip(self.widths.chunks(tiles));
        let parts = sections.map(|(((zeros, scales), pivots), widths)| {
            let part =
                codes.split_off_mut(..self.settings.codes_len(widths)).expect("the section holds all codes");
            Part { zeros, scales, pivots, widths, codes: part }
        });
        workers.for_each(x.chunks(per_part).zip(parts).zip(&mut self.scratch), |((x, part), scratch)| {
            encoder.tiles(x, part, scratch);
        });
        codes.fill(0);
        bits::pack(self.settings.tile.ilog2(), &self.pivots, out.pivots);
    }
}

/// What all threads know.
struct Encoder<'a> {
    isa: Isa,
    layout: &'a Layout,
    settings: TahSettings,
    scale: Factors,
}

/// What a thread writes, one entry a tile in each section.
struct Part<'a> {
    zeros: &'a mut [[u8; 2]],
    scales: &'a mut [[u8; 2]],
    pivots: &'a mut [u16],
    widths: &'a [u8],
    codes: &'a mut [u8],
}

impl Encoder<'_> {
    /// Values of an allocation tile, the last one of a token maybe with fewer.
    fn allocation_len(&self) -> usize {
        self.layout.tiles_per_allocation * self.settings.tile
    }

    /// An estimate of the entropy of every allocation tile of some tokens.
    fn estimate<E: Element>(&self, x: &[E], out: &mut [f32], scratch: &mut Scratch) {
        let len = self.allocation_len();
        if self.layout.channels.is_multiple_of(len) {
            return self.isa.run(entropy::Estimates(Entropies { x, len, scale: self.scale, out }));
        }
        let per_token = self.layout.allocations_per_token();
        for (x, out) in x.chunks_exact(self.layout.channels).zip(out.chunks_exact_mut(per_token)) {
            load(x, self.scale, &mut scratch.token);
            let whole = scratch.token.len() / len;
            let (x, last_x) = scratch.token.split_at(whole * len);
            let (out, last_out) = out.split_at_mut(whole);
            self.isa.run(entropy::Estimates(Entropies { x, len, scale: Factors::ONE, out }));
            if !last_x.is_empty() {
                let (x, len, out) = (last_x, last_x.len(), last_out);
                self.isa.run(entropy::Estimates(Entropies { x, len, scale: Factors::ONE, out }));
            }
        }
    }

    fn estimates<'a>(&self, entropies: &'a [f32]) -> allocate::Estimates<'a> {
        let len = self.allocation_len();
        allocate::Estimates { entropies, margin: entropy::margin(len), limit: (len as f32).log2() }
    }

    /// The entropy of an allocation tile of a sample.
    fn entropy<E: Element>(&self, x: &[E], tile: usize) -> f32 {
        let (per_token, len) = (self.layout.allocations_per_token(), self.allocation_len());
        let token = &x[tile / per_token * self.layout.channels..][..self.layout.channels];
        let x = &token[tile % per_token * len..];
        let x = &x[..len.min(x.len())];
        let mut out = [0.0];
        self.isa.run(Entropies { x, len: x.len(), scale: self.scale, out: &mut out });
        out[0]
    }

    /// Quantizes every tile of some tokens.
    fn tiles<E: Element>(&self, x: &[E], part: Part<'_>, scratch: &mut Scratch) {
        if self.layout.channels.is_multiple_of(self.settings.tile) {
            return self.run(x, self.scale, part, &mut scratch.tiles);
        }
        let Part { mut zeros, mut scales, mut pivots, mut widths, mut codes } = part;
        for x in x.chunks_exact(self.layout.channels) {
            load(x, self.scale, &mut scratch.token);
            let tiles = self.layout.tiles_per_token;
            let token;
            (token, widths) = widths.split_at(tiles);
            let part = Part {
                widths: token,
                zeros: zeros.split_off_mut(..tiles).expect("one a tile"),
                scales: scales.split_off_mut(..tiles).expect("one a tile"),
                pivots: pivots.split_off_mut(..tiles).expect("one a tile"),
                codes: codes
                    .split_off_mut(..self.settings.codes_len(token))
                    .expect("the codes of every tile"),
            };
            self.run(&scratch.token[..], Factors::ONE, part, &mut scratch.tiles);
        }
    }

    fn run<E: Element>(&self, x: &[E], scale: Factors, part: Part<'_>, scratch: &mut [f32]) {
        let Part { zeros, scales, pivots, widths, codes } = part;
        let TahSettings { tile, outlier_ratio, .. } = self.settings;
        self.isa.run(tile::Encode {
            x,
            tile,
            scale,
            outlier_ratio,
            widths,
            zeros,
            scales,
            pivots,
            codes,
            scratch,
        });
    }
}

/// One token's channels as scaled `f32`, then zeros.
fn load<E: Element>(x: &[E], scale: Factors, token: &mut [f32]) {
    let (values, padding) = token.split_at_mut(x.len());
    E::widen(x, values);
    for value in values {
        *value = scale.apply(*value);
    }
    padding.fill(0.0);
}
