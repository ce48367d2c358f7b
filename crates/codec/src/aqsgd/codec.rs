use super::AqsgdSettings;
use super::blocks::{BLOCK_HEADER_LEN, Block, Lengths};
use super::end::End;
use crate::element::Element;
use crate::fixed::Fixed;
use crate::kernel::convert::Convert;
use crate::message::{HEADER_LEN, Message, first_non_finite, max_abs, read_header, write_header};
use crate::raw::{Raw, RawSettings};
use crate::scale::{Factors, MessageScale};
use crate::threads::Workers;
use crate::{
    Codec, CodecError, CodecId, CodecSpec, DType, DecodeError, EncodeError, ErrorStats, PackedSize,
    SampleMemory, Shape, TensorView, TensorViewMut, Values, ValuesMut,
};

/// What an encoder cannot refuse: a message that it has just made.
const OWN: &str = "a codec reads its own messages";

/// Differences to what both ends remember of a sample.
#[derive(Debug)]
pub(crate) struct Aqsgd {
    settings: AqsgdSettings,
    workers: Workers,
    first: Message<Raw>,
    difference: Message<Fixed>,
    sent: End,
    received: End,
    /// CRC-32 and length of the last message encoded, whose tensor the receiver has as `sent` has it.
    encoded: Option<(u32, usize)>,
}

impl Aqsgd {
    pub(super) fn new(
        settings: AqsgdSettings,
        workers: Workers,
        sent: Box<dyn SampleMemory>,
        received: Box<dyn SampleMemory>,
    ) -> Self {
        let first = Message::new(Raw(RawSettings { dtype: settings.first }), workers.clone());
        let difference = Message::new(Fixed(settings.difference()), workers.clone());
        let [sent, received] = [sent, received].map(|memory| End::new(settings.keep, memory));
        Self { settings, workers, first, difference, sent, received, encoded: None }
    }

    /// The blocks of a tensor of this shape.
    fn lengths(&self, shape: Shape) -> Result<Lengths, CodecError> {
        let sample = sample(shape);
        let first = CodecSpec::Raw(RawSettings { dtype: self.settings.first }).id();
        Ok(Lengths {
            first: (first, self.first.layout(sample)?.1),
            difference: self.difference.layout(sample)?.1,
        })
    }

    /// Bytes of a message of blocks of `block` bytes.
    fn message_len(shape: Shape, block: Option<usize>) -> Result<usize, CodecError> {
        if shape.elements()? == 0 {
            return Ok(HEADER_LEN);
        }
        let blocks = block.and_then(|block| block.checked_mul(shape.samples));
        blocks.and_then(|blocks| blocks.checked_add(HEADER_LEN)).ok_or(CodecError::TooLarge { shape })
    }

    fn longest(&self, shape: Shape) -> Result<usize, CodecError> {
        Self::message_len(shape, self.lengths(shape)?.longest())
    }

    fn encode_values<E: Element>(
        &mut self,
        names: impl Iterator<Item = u64>,
        shape: Shape,
        x: &[E],
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let (needed, got) = (self.longest(shape)?, out.len());
        let out = out.get_mut(..needed).ok_or(EncodeError::BufferTooSmall { needed, got })?;
        if !self.workers.enter(x.len(), || max_abs(&self.workers, x)).is_finite() {
            return Err(first_non_finite(x));
        }
        self.encoded = None;
        let mut at = HEADER_LEN;
        if !x.is_empty() {
            let len = shape.tokens * shape.channels;
            self.sent.begin(names, shape.samples, len)?;
            for (i, x) in x.chunks_exact(len).enumerate() {
                at += self.encode_sample(i, sample(shape), x, &mut out[at..])?;
            }
            self.sent.commit()?;
        }
        write_header(CodecId::Aqsgd, MessageScale::ONE, &mut out[..HEADER_LEN]);
        self.encoded = Some((crc32fast::hash(&out[..at]), at));
        Ok(at)
    }

    /// Writes the block of sample `i` to the front of `out`, and makes what the receiver has of it the sample's values.
    fn encode_sample<E: Element>(
        &mut self,
        i: usize,
        shape: Shape,
        x: &[E],
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let Self { workers, first, difference, sent: end, .. } = self;
        let checksum = end.checksum(i);
        let (header, message) = out.split_at_mut(BLOCK_HEADER_LEN);
        Block::write_header(end.name(i), checksum, header);
        let length = if checksum.is_some() {
            end.subtract(workers, i, x)?;
            let length = difference.encode_values(shape, end.sample_mut(i), message)?;
            difference.decode_values(shape, &message[..length], end.sample_mut(i)).expect(OWN);
            end.add(workers, i)?;
            length
        } else {
            let length = first.encode_values(shape, x, message)?;
            first.decode_values(shape, &message[..length], end.sample_mut(i)).expect(OWN);
            end.keep_first(workers, i);
            length
        };
        Ok(BLOCK_HEADER_LEN + length)
    }

    /// Decodes a message into the values of `received`, and remembers nothing yet.
    fn receive(&mut self, shape: Shape, bytes: &[u8], dtype: DType) -> Result<(), DecodeError> {
        let (lengths, expected) = (self.lengths(shape)?, Self::message_len(shape, Some(BLOCK_HEADER_LEN))?);
        let (exponent, _) = read_header(CodecId::Aqsgd, bytes, expected)?;
        let values = shape.elements()?;
        let samples = if values == 0 { 0 } else { shape.samples };
        let mut end = HEADER_LEN;
        for block in lengths.blocks(bytes, samples) {
            end += BLOCK_HEADER_LEN + block?.message.len();
        }
        if bytes.len() != end {
            return Err(DecodeError::Length { expected: end, got: bytes.len() });
        }
        if exponent != 0 {
            return Err(DecodeError::Scale { got: exponent, min: 0, max: 0 });
        }
        let Self { workers, first, difference, received: end, .. } = self;
        let blocks = || lengths.blocks(bytes, samples).flatten();
        end.begin(blocks().map(|block| block.sample), samples, values / samples.max(1))?;
        for (i, Block { sample: name, checksum, message }) in blocks().enumerate() {
            let receiver = end.checksum(i);
            if checksum != receiver {
                return Err(DecodeError::Parted { sample: name, sender: checksum, receiver });
            }
            if checksum.is_some() {
                difference.decode_values(sample(shape), message, end.sample_mut(i))?;
                end.add(workers, i)?;
            } else {
                first.decode_values(sample(shape), message, end.sample_mut(i))?;
                end.keep_first(workers, i);
            }
            let values = &*end.sample_mut(i);
            let magnitude = f64::from(workers.enter(values.len(), || max_abs(workers, values)));
            if magnitude > dtype.overflow() {
                return Err(DecodeError::Range { magnitude, dtype });
            }
        }
        Ok(())
    }

    fn decode_values<E: Element>(
        &mut self,
        shape: Shape,
        bytes: &[u8],
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        self.receive(shape, bytes, E::DTYPE)?;
        self.workers.isa.run(Convert { x: &self.received.values, scale: Factors::ONE, out });
        Ok(self.received.commit()?)
    }

    fn measure_values<E: Element>(
        &mut self,
        shape: Shape,
        x: &[E],
        bytes: &[u8],
    ) -> Result<ErrorStats, DecodeError> {
        let end = if self.encoded == Some((crc32fast::hash(bytes), bytes.len())) {
            &self.sent
        } else {
            self.receive(shape, bytes, E::DTYPE)?;
            &self.received
        };
        let narrowed = |value: &f32| {
            let mut narrow = [E::default()];
            E::narrow(&[*value], &mut narrow);
            narrow[0].to_f32()
        };
        let decoded = end.values.iter().map(narrowed);
        Ok(ErrorStats::of(x.iter().map(|x| x.to_f32()).zip(decoded)))
    }
}

impl Codec for Aqsgd {
    fn spec(&self) -> CodecSpec {
        CodecSpec::Aqsgd(self.settings)
    }

    fn packed_size(&self, shape: Shape, _dtype: DType) -> Result<PackedSize, CodecError> {
        let Lengths { first: (_, first), difference } = self.lengths(shape)?;
        let least = Self::message_len(shape, first.min(difference).checked_add(BLOCK_HEADER_LEN))?;
        Ok(PackedSize::Between { least, most: self.longest(shape)? })
    }

    fn usual_size(&self, shape: Shape, _dtype: DType) -> Result<usize, CodecError> {
        Self::message_len(shape, self.lengths(shape)?.difference.checked_add(BLOCK_HEADER_LEN))
    }

    fn encode(&mut self, x: TensorView<'_>, out: &mut [u8]) -> Result<usize, EncodeError> {
        self.encode_named(0..x.shape().samples as u64, x, out)
    }

    fn encode_samples(
        &mut self,
        ids: &[u64],
        x: TensorView<'_>,
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let (samples, got) = (x.shape().samples, ids.len());
        if samples != got {
            return Err(EncodeError::Samples { samples, got });
        }
        self.encode_named(ids.iter().copied(), x, out)
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
        match x.values() {
            Values::F32(x) => self.measure_values(shape, x, bytes),
            Values::F16(x) => self.measure_values(shape, x, bytes),
            Values::BF16(x) => self.measure_values(shape, x, bytes),
        }
    }
}

impl Aqsgd {
    fn encode_named(
        &mut self,
        names: impl Iterator<Item = u64>,
        x: TensorView<'_>,
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let shape = x.shape();
        match x.values() {
            Values::F32(x) => self.encode_values(names, shape, x, out),
            Values::F16(x) => self.encode_values(names, shape, x, out),
            Values::BF16(x) => self.encode_values(names, shape, x, out),
        }
    }
}

/// The shape of one sample, if there are any.
fn sample(shape: Shape) -> Shape {
    Shape { samples: shape.samples.min(1), ..shape }
}
