//! TAH-Quant: tile-wise adaptive widths and a Hadamard transform of outlier tiles (section 3 of the paper).

mod allocate;
mod decode;
mod encode;
mod layout;
mod settings;

use half::f16;

use crate::element::Element;
use crate::kernel::tile;
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::threads::{FirstError, Workers};
use crate::{CodecError, CodecSpec, DecodeError, Shape};

use allocate::Ranking;
use layout::Layout;
pub use settings::{Allocation, Selection, TahSettings};

/// Bytes of a scale or zero point on the wire.
const PARAMETER: usize = size_of::<f16>();

/// The payload of TAH messages: one block a sample.
#[derive(Debug)]
pub(crate) struct Tah {
    settings: TahSettings,
    /// One a thread.
    coders: Vec<SampleCoder>,
}

/// Encodes and decodes samples one by one.
#[derive(Debug)]
struct SampleCoder {
    settings: TahSettings,
    /// One for each thread that shares a sample.
    scratch: Vec<Scratch>,
    /// One sample's pivots.
    pivots: Vec<u16>,
    /// The widths of one sample's tiles, in bits.
    widths: Vec<u8>,
    /// The entropies of one sample's allocation tiles.
    entropies: Vec<f32>,
    ranking: Ranking,
}

/// What a thread writes to while it encodes or decodes.
#[derive(Debug, Default)]
struct Scratch {
    /// One token's channels, scaled, zero-padded to whole tiles.
    token: Vec<f32>,
    /// The kernels' own.
    tiles: Vec<f32>,
}

impl SampleCoder {
    fn new(settings: TahSettings) -> Self {
        Self {
            settings,
            scratch: Vec::new(),
            pivots: Vec::new(),
            widths: Vec::new(),
            entropies: Vec::new(),
            ranking: Ranking::default(),
        }
    }

    /// Sizes the scratch for samples that `threads` threads share, without allocating if larger ones have passed.
    fn prepare(&mut self, layout: &Layout, threads: usize) {
        if self.scratch.len() < threads {
            self.scratch.resize_with(threads, Scratch::default);
        }
        for scratch in &mut self.scratch {
            scratch.token.resize(layout.tiles_per_token * self.settings.tile, 0.0);
            scratch.tiles.resize(tile::scratch_len(self.settings.tile), 0.0);
        }
        self.pivots.resize(layout.tiles, 0);
        self.widths.resize(layout.tiles, 0);
        self.entropies.resize(layout.allocations, 0.0);
    }
}

/// How threads share a message: as many whole samples each as there are for all, and then all of them each sample left.
struct Shares {
    /// Whole samples of each thread.
    samples: usize,
    /// Whole samples of all threads.
    all_samples: usize,
    /// Tokens of each thread in a sample that is left: a multiple of 8, so that its tiles begin at whole bytes of every
    /// section.
    tokens: usize,
}

impl Shares {
    /// How `threads` threads share samples each of which is worth `in_sample` of them.
    fn new(layout: &Layout, samples: usize, threads: usize, in_sample: usize) -> Self {
        // One more whole sample for some is better than one that cannot be shared.
        let each = if in_sample == 1 { samples.div_ceil(threads) } else { samples / threads };
        Self {
            samples: each,
            all_samples: samples.min(each * threads),
            tokens: layout.tokens.div_ceil(in_sample).next_multiple_of(8),
        }
    }
}

impl Tah {
    /// For checked settings.
    pub(crate) fn new(settings: TahSettings) -> Self {
        Self { settings, coders: Vec::new() }
    }

    /// Sizes the scratch for a message of this many values.
    fn prepare(&mut self, workers: &Workers, layout: &Layout, values: usize) -> Shares {
        let (threads, in_sample) = (workers.worth(values), workers.worth(layout.sample_elements()));
        while self.coders.len() < threads {
            self.coders.push(SampleCoder::new(self.settings));
        }
        for (i, coder) in self.coders.iter_mut().enumerate() {
            coder.prepare(layout, if i == 0 { in_sample } else { 1 });
        }
        Shares::new(layout, values / layout.sample_elements(), threads, in_sample)
    }
}

impl Payload for Tah {
    type Layout = Layout;

    fn spec(&self) -> CodecSpec {
        CodecSpec::Tah(self.settings)
    }

    fn layout(&self, shape: Shape) -> Result<Layout, CodecError> {
        Layout::new(&self.settings, shape).ok_or(CodecError::TooLarge { shape })
    }

    fn len(layout: &Layout) -> usize {
        layout.total_bytes
    }

    fn encode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Layout,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    ) {
        let shares = self.prepare(workers, layout, x.len());
        let (values, bytes) = (layout.sample_elements(), layout.sample_bytes);
        let encode = |coder: &mut SampleCoder, tokens, x: &[E], out: &mut [u8]| {
            for (x, out) in x.chunks_exact(values).zip(out.chunks_exact_mut(bytes)) {
                coder.encode_sample(workers, layout, tokens, x, scale, layout.split_mut(out));
            }
        };
        let (whole, left) = x.split_at(shares.all_samples * values);
        let (whole_out, left_out) = out.split_at_mut(shares.all_samples * bytes);
        let each = shares.samples.max(1);
        let parts = whole.chunks(each * values).zip(whole_out.chunks_mut(each * bytes));
        workers.for_each(parts.zip(&mut self.coders), |((x, out), coder)| {
            encode(coder, layout.tokens, x, out);
        });
        encode(&mut self.coders[0], shares.tokens, left, left_out);
    }

    fn decode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Layout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let shares = self.prepare(workers, layout, out.len());
        let (values, bytes) = (layout.sample_elements(), layout.sample_bytes);
        let decode = |coder: &mut SampleCoder, first, tokens, payload: &[u8], out: &mut [E]| {
            let samples = out.chunks_exact_mut(values).zip(payload.chunks_exact(bytes));
            for (i, (out, bytes)) in samples.enumerate() {
                let block = layout.split(bytes);
                coder.check_sample(layout, first + i, block)?;
                coder.decode_sample(workers, layout, tokens, block, scale, out);
            }
            Ok(())
        };
        let (whole, left) = payload.split_at(shares.all_samples * bytes);
        let (whole_out, left_out) = out.split_at_mut(shares.all_samples * values);
        let each = shares.samples.max(1);
        let parts = whole.chunks(each * bytes).zip(whole_out.chunks_mut(each * values));
        let error = FirstError::default();
        workers.for_each(parts.zip(&mut self.coders).enumerate(), |(i, ((bytes, out), coder))| {
            error.note(i, decode(coder, i * each, layout.tokens, bytes, out));
        });
        error.into_result()?;
        decode(&mut self.coders[0], shares.all_samples, shares.tokens, left, left_out)
    }
}
