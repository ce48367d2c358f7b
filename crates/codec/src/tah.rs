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
use crate::threads;
use crate::{CodecError, CodecSpec, DecodeError, Execution, Shape};

use allocate::Ranking;
use layout::Layout;
pub use settings::{Allocation, TahSettings};

/// Bytes of a scale or zero point on the wire.
const PARAMETER: usize = size_of::<f16>();

/// The payload of TAH messages: one block a sample.
#[derive(Debug)]
pub(crate) struct Tah {
    settings: TahSettings,
    /// One a thread.
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

impl Tah {
    /// For checked settings.
    pub(crate) fn new(settings: TahSettings) -> Self {
        Self {
            settings,
            scratch: Vec::new(),
            pivots: Vec::new(),
            widths: Vec::new(),
            entropies: Vec::new(),
            ranking: Ranking::default(),
        }
    }

    /// Sizes the scratch for a shape, without allocating if a larger one has passed. Returns the number of tokens that
    /// each thread gets: a multiple of 8, so that its tiles begin at whole bytes of every section.
    fn prepare(&mut self, execution: Execution, layout: &Layout) -> usize {
        let threads = threads::worth(execution.threads, layout.sample_elements());
        let tokens = layout.tokens.div_ceil(threads).next_multiple_of(8);
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
        tokens
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
        execution: Execution,
        layout: &Layout,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    ) {
        let tokens = self.prepare(execution, layout);
        let samples = x.chunks_exact(layout.sample_elements()).zip(out.chunks_exact_mut(layout.sample_bytes));
        for (x, out) in samples {
            self.encode_sample(execution.isa, layout, tokens, x, scale, layout.split_mut(out));
        }
    }

    fn decode<E: Element>(
        &mut self,
        execution: Execution,
        layout: &Layout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let tokens = self.prepare(execution, layout);
        let samples =
            out.chunks_exact_mut(layout.sample_elements()).zip(payload.chunks_exact(layout.sample_bytes));
        for (sample, (out, bytes)) in samples.enumerate() {
            let block = layout.split(bytes);
            self.check_sample(layout, sample, block)?;
            self.decode_sample(execution.isa, layout, tokens, block, scale, out);
        }
        Ok(())
    }
}
