//! TAH-Quant: tile-wise adaptive widths and a Hadamard transform of outlier tiles (section 3 of the paper).

mod allocate;
mod decode;
mod encode;
mod layout;
mod settings;

use half::f16;

use crate::element::Element;
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::{CodecError, CodecSpec, DecodeError, Shape};

use layout::Layout;
pub use settings::{Allocation, TahSettings};

/// Bytes of a scale or zero point on the wire.
const PARAMETER: usize = size_of::<f16>();

/// The bit of a scale that marks an outlier tile, a float's sign.
const OUTLIER: u16 = 0x8000;

/// The payload of TAH messages: one block a sample.
#[derive(Debug)]
pub(crate) struct Tah {
    settings: TahSettings,
    /// One token's channels, scaled, zero-padded to whole tiles.
    token: Vec<f32>,
    /// One tile's codes.
    codes: Vec<u16>,
    /// One sample's pivots.
    pivots: Vec<u16>,
    /// One sample's allocation tiles, to be ranked.
    ranks: Vec<u64>,
}

impl Tah {
    /// For checked settings.
    pub(crate) fn new(settings: TahSettings) -> Self {
        let codes = vec![0; settings.tile];
        Self { settings, token: Vec::new(), codes, pivots: Vec::new(), ranks: Vec::new() }
    }

    /// Sizes the scratch for a shape, without allocating if a larger one has passed.
    fn prepare(&mut self, layout: &Layout) {
        self.token.resize(layout.tiles_per_token * self.settings.tile, 0.0);
        self.pivots.resize(layout.tiles, 0);
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

    fn encode<E: Element>(&mut self, layout: &Layout, x: &[E], scale: MessageScale, out: &mut [u8]) {
        self.prepare(layout);
        let samples = x.chunks_exact(layout.sample_elements()).zip(out.chunks_exact_mut(layout.sample_bytes));
        for (x, out) in samples {
            self.encode_sample(layout, x, scale, layout.split_mut(out));
        }
    }

    fn decode<E: Element>(
        &mut self,
        layout: &Layout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        self.prepare(layout);
        let samples =
            out.chunks_exact_mut(layout.sample_elements()).zip(payload.chunks_exact(layout.sample_bytes));
        for (sample, (out, bytes)) in samples.enumerate() {
            self.decode_sample(layout, sample, layout.split(bytes), scale, out)?;
        }
        Ok(())
    }
}
