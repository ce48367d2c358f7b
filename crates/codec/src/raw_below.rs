use crate::message::Message;
use crate::raw::{Raw, RawSettings};
use crate::threads::Workers;
use crate::{
    Codec, CodecError, CodecId, CodecSpec, DType, DecodeError, EncodeError, ErrorStats, PackedSize, Shape,
    TensorView, TensorViewMut,
};

/// Sends tensors of fewer values than the spec's `raw_below` raw, in their own number format, and all others by the spec's
/// codec.
#[derive(Debug)]
pub(crate) struct RawBelow {
    /// One for each number format, in the order of [`DType::ALL`].
    raw: [Message<Raw>; 3],
    codec: Box<dyn Codec>,
}

impl RawBelow {
    pub(crate) fn new(codec: Box<dyn Codec>, workers: &Workers) -> Self {
        let raw = DType::ALL.map(|dtype| Message::new(Raw(RawSettings { dtype }), workers.clone()));
        Self { raw, codec }
    }

    /// The codec of a tensor in `dtype`.
    fn codec(&mut self, shape: Shape, dtype: DType) -> &mut dyn Codec {
        if self.spec().sends_raw(shape) { &mut self.raw[dtype as usize] } else { &mut *self.codec }
    }

    /// The codec of a message, to be decoded to `dtype`. The sender's tensor may have had another format, which a raw
    /// message names.
    fn decoder(&mut self, shape: Shape, message: &[u8], dtype: DType) -> &mut dyn Codec {
        let sender = message.get(1).and_then(|&id| CodecId::try_from(id).ok()?.raw_dtype());
        self.codec(shape, sender.unwrap_or(dtype))
    }
}

impl Codec for RawBelow {
    fn spec(&self) -> CodecSpec {
        self.codec.spec()
    }

    fn packed_size(&self, shape: Shape, dtype: DType) -> Result<PackedSize, CodecError> {
        if self.spec().sends_raw(shape) {
            self.raw[dtype as usize].packed_size(shape, dtype)
        } else {
            self.codec.packed_size(shape, dtype)
        }
    }

    /// A tensor just below the threshold may make a longer message than those above.
    fn longest_message(&self, largest: Shape, dtype: DType) -> Result<usize, CodecError> {
        let values = largest.elements()?.min(self.spec().raw_below() - 1);
        let raw = self.raw[dtype as usize].packed_size(Shape::new(1, 1, values), dtype)?;
        Ok(self.codec.packed_size(largest, dtype)?.bound().max(raw.bound()))
    }

    fn encode(&mut self, x: TensorView<'_>, out: &mut [u8]) -> Result<usize, EncodeError> {
        self.codec(x.shape(), x.dtype()).encode(x, out)
    }

    fn decode(&mut self, bytes: &[u8], out: TensorViewMut<'_>) -> Result<(), DecodeError> {
        self.decoder(out.shape(), bytes, out.dtype()).decode(bytes, out)
    }

    fn measure(&mut self, x: TensorView<'_>, bytes: &[u8]) -> Result<ErrorStats, DecodeError> {
        self.decoder(x.shape(), bytes, x.dtype()).measure(x, bytes)
    }
}
