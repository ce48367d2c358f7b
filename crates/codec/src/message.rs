use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};

use half::{bf16, f16};

use crate::element::Element;
use crate::kernel::scan::MaxAbs;
use crate::scale::MessageScale;
use crate::threads::Workers;
use crate::{
    Codec, CodecError, CodecId, CodecSpec, DType, DecodeError, EncodeError, ErrorStats, PackedSize, Shape,
    TensorView, TensorViewMut, Values, ValuesMut,
};

/// The version byte of every message, the `version` of `docs/format.md`.
pub const FORMAT_VERSION: u8 = 1;

/// Bytes in front of the payload: version, codec id, `k` as little-endian `i16`.
pub const HEADER_LEN: usize = 4;

/// What is particular to one codec with messages of fixed length; [`Message`] makes it a [`Codec`].
pub(crate) trait Payload: std::fmt::Debug + Send {
    /// Where things are in the payload of one shape.
    type Layout: Send + Sync;

    fn spec(&self) -> CodecSpec;

    /// The layout for a shape, every count in it checked against overflow.
    fn layout(&self, shape: Shape) -> Result<Self::Layout, CodecError>;

    /// Bytes of the payload.
    fn len(layout: &Self::Layout) -> usize;

    /// The scale for a tensor of this format and largest magnitude.
    fn scale(&self, _dtype: DType, max_abs: f32) -> MessageScale {
        MessageScale::of(max_abs)
    }

    /// Whether a receiver may find this scale. Called after its range was checked.
    fn check_scale(&self, _scale: MessageScale) -> Result<(), DecodeError> {
        Ok(())
    }

    /// Writes the payload, all of `out`. The tensor is not empty and finite.
    fn encode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Self::Layout,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    );

    /// Reads a payload of the right length. The tensor is not empty.
    fn decode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &Self::Layout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError>;
}

/// A codec: the steps all of them share around a [`Payload`].
#[derive(Debug)]
pub(crate) struct Message<P> {
    payload: P,
    workers: Workers,
    measured: Measured,
}

impl<P: Payload> Message<P> {
    pub(crate) fn new(payload: P, workers: Workers) -> Self {
        Self { payload, workers, measured: Measured::default() }
    }

    /// The payload's layout and the bytes of the whole message.
    pub(crate) fn layout(&self, shape: Shape) -> Result<(P::Layout, usize), CodecError> {
        shape.elements()?;
        let layout = self.payload.layout(shape)?;
        let bytes = P::len(&layout).checked_add(HEADER_LEN).ok_or(CodecError::TooLarge { shape })?;
        Ok((layout, bytes))
    }

    pub(crate) fn encode_values<E: Element>(
        &mut self,
        shape: Shape,
        x: &[E],
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let (layout, needed) = self.layout(shape)?;
        let got = out.len();
        let out = out.get_mut(..needed).ok_or(EncodeError::BufferTooSmall { needed, got })?;
        let Self { payload, workers, .. } = self;
        workers.enter(x.len(), || {
            let max_abs = max_abs(workers, x);
            if !max_abs.is_finite() {
                return Err(first_non_finite(x));
            }
            let scale = payload.scale(E::DTYPE, max_abs);
            let (header, bytes) = out.split_at_mut(HEADER_LEN);
            write_header(payload.spec().id(), scale, header);
            if !x.is_empty() {
                payload.encode(workers, &layout, x, scale, bytes);
            }
            Ok(needed)
        })
    }

    pub(crate) fn decode_values<E: Element>(
        &mut self,
        shape: Shape,
        bytes: &[u8],
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let (layout, expected) = self.layout(shape)?;
        let (scale, bytes) = self.open(bytes, expected)?;
        let magnitude = scale.least_maximum();
        if magnitude >= E::DTYPE.overflow() {
            return Err(DecodeError::Range { magnitude, dtype: E::DTYPE });
        }
        if out.is_empty() {
            Ok(())
        } else {
            let Self { payload, workers, .. } = self;
            workers.enter(out.len(), || payload.decode(workers, &layout, bytes, scale, out))
        }
    }

    /// Checks header and length.
    fn open<'a>(&self, bytes: &'a [u8], expected: usize) -> Result<(MessageScale, &'a [u8]), DecodeError> {
        let (exponent, payload) = read_header(self.payload.spec().id(), bytes, expected)?;
        if bytes.len() != expected {
            return Err(DecodeError::Length { expected, got: bytes.len() });
        }
        let scale = MessageScale::from_wire(exponent)?;
        self.payload.check_scale(scale)?;
        Ok((scale, payload))
    }

    fn measure_values<E: Element>(
        &mut self,
        shape: Shape,
        x: &[E],
        bytes: &[u8],
        decoded: &mut Vec<E>,
    ) -> Result<ErrorStats, DecodeError> {
        decoded.clear();
        decoded.resize(x.len(), E::default());
        self.decode_values(shape, bytes, decoded)?;
        Ok(ErrorStats::of(x.iter().zip(decoded).map(|(x, decoded)| (x.to_f32(), decoded.to_f32()))))
    }
}

impl<P: Payload> Codec for Message<P> {
    fn spec(&self) -> CodecSpec {
        self.payload.spec()
    }

    fn packed_size(&self, shape: Shape, _dtype: DType) -> Result<PackedSize, CodecError> {
        self.layout(shape).map(|(_, bytes)| PackedSize::Exact(bytes))
    }

    fn encode(&mut self, x: TensorView<'_>, out: &mut [u8]) -> Result<usize, EncodeError> {
        let shape = x.shape();
        match x.values() {
            Values::F32(x) => self.encode_values(shape, x, out),
            Values::F16(x) => self.encode_values(shape, x, out),
            Values::BF16(x) => self.encode_values(shape, x, out),
        }
    }

    fn decode(&mut self, bytes: &[u8], out: TensorViewMut<'_>) -> Result<(), DecodeError> {
        let shape = out.shape();
        match out.into_values() {
            ValuesMut::F32(out) => self.decode_values(shape, bytes, out),
            ValuesMut::F16(out) => self.decode_values(shape, bytes, out),
            ValuesMut::BF16(out) => self.decode_values(shape, bytes, out),
        }
    }

    fn measure(&mut self, x: TensorView<'_>, bytes: &[u8]) -> Result<ErrorStats, DecodeError> {
        let shape = x.shape();
        let mut measured = mem::take(&mut self.measured);
        let stats = match x.values() {
            Values::F32(x) => self.measure_values(shape, x, bytes, &mut measured.f32),
            Values::F16(x) => self.measure_values(shape, x, bytes, &mut measured.f16),
            Values::BF16(x) => self.measure_values(shape, x, bytes, &mut measured.bf16),
        };
        self.measured = measured;
        stats
    }
}

/// Scratch of [`Codec::measure`]: the decoded tensor, in the format of the original.
#[derive(Debug, Default)]
struct Measured {
    f32: Vec<f32>,
    f16: Vec<f16>,
    bf16: Vec<bf16>,
}

/// Writes the first [`HEADER_LEN`] bytes of a message, all of `header`.
pub(crate) fn write_header(id: CodecId, scale: MessageScale, header: &mut [u8]) {
    header[0] = FORMAT_VERSION;
    header[1] = id.into();
    header[2..].copy_from_slice(&scale.exponent().to_le_bytes());
}

/// The exponent of a message of the codec `id`, not yet checked, and its payload. A message without a whole header is
/// shorter than `expected` bytes.
pub(crate) fn read_header(id: CodecId, bytes: &[u8], expected: usize) -> Result<(i16, &[u8]), DecodeError> {
    let Some((&[version, codec, low, high], payload)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(DecodeError::Length { expected, got: bytes.len() });
    };
    if version != FORMAT_VERSION {
        return Err(DecodeError::Version { expected: FORMAT_VERSION, got: version });
    }
    if codec != u8::from(id) {
        return Err(DecodeError::Codec { expected: id, got: codec });
    }
    Ok((i16::from_le_bytes([low, high]), payload))
}

/// The largest magnitude, not finite if any value is not. Bit patterns without a sign order like magnitudes.
pub(crate) fn max_abs<E: Element>(workers: &Workers, x: &[E]) -> f32 {
    let max = Max::default();
    let part = x.len().div_ceil(workers.worth(x.len())).max(1);
    workers.for_each(x.chunks(part), |x| max.note(workers.isa.run(MaxAbs(x))));
    max.into_inner()
}

/// The largest of the magnitudes that several threads find, not finite if any is not.
#[derive(Debug, Default)]
pub(crate) struct Max(AtomicU32);

impl Max {
    pub(crate) fn note(&self, magnitude: f32) {
        self.0.fetch_max(magnitude.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn into_inner(self) -> f32 {
        f32::from_bits(self.0.into_inner())
    }
}

pub(crate) fn first_non_finite<E: Element>(x: &[E]) -> EncodeError {
    let (index, value) = x
        .iter()
        .map(|value| value.to_f32())
        .enumerate()
        .find(|(_, value)| !value.is_finite())
        .expect("the maximum was not finite");
    EncodeError::NonFinite { index, value }
}
