use thinwire_codec::{
    Codec, CodecSpec, DType, DecodeError, EncodeError, ErrorStats, Execution, Shape, TensorView,
    TensorViewMut, ValuesMut,
};

use crate::CollectiveError;

/// The codecs that a rank has used so far.
#[derive(Debug)]
pub(crate) struct Codecs {
    rank: usize,
    execution: Execution,
    built: Vec<Box<dyn Codec>>,
}

impl Codecs {
    pub(crate) fn new(rank: usize, execution: Execution) -> Self {
        Self { rank, execution, built: Vec::new() }
    }

    /// Where [`Codecs::encode`] and [`Codecs::decode`] find a codec, which is built when it is first used.
    pub(crate) fn find(&mut self, spec: &CodecSpec) -> Result<usize, CollectiveError> {
        if let Some(place) = self.built.iter().position(|codec| codec.spec() == *spec) {
            return Ok(place);
        }
        if let CodecSpec::Aqsgd(_) = spec {
            return Err(CollectiveError::Remembers { codec: spec.to_string() });
        }
        let codec = spec.build_with(self.execution).map_err(|source| CollectiveError::Codec {
            rank: self.rank,
            codec: spec.to_string(),
            source: Box::new(source),
        })?;
        self.built.push(codec);
        Ok(self.built.len() - 1)
    }

    /// Writes the message of `x` into `message` from `start` on, and says where it ends. `message` grows if it has to.
    pub(crate) fn encode(
        &mut self,
        codec: usize,
        x: &[f32],
        message: &mut Vec<u8>,
        start: usize,
    ) -> Result<usize, EncodeError> {
        let (codec, shape) = (&mut self.built[codec], Shape::new(1, 1, x.len()));
        let end = start + codec.packed_size(shape, DType::F32)?.bound();
        if message.len() < end {
            message.resize(end, 0);
        }
        let bytes = codec.encode(TensorView::new(shape, x)?, &mut message[start..end])?;
        Ok(start + bytes)
    }

    pub(crate) fn decode(
        &mut self,
        codec: usize,
        message: &[u8],
        out: ValuesMut<'_>,
    ) -> Result<(), DecodeError> {
        let shape = Shape::new(1, 1, out.len());
        self.built[codec].decode(message, TensorViewMut::new(shape, out)?)
    }

    /// What encoding `x` as this message has done to it.
    pub(crate) fn measure(
        &mut self,
        codec: usize,
        x: &[f32],
        message: &[u8],
    ) -> Result<ErrorStats, DecodeError> {
        self.built[codec].measure(TensorView::new(Shape::new(1, 1, x.len()), x)?, message)
    }
}

/// Values that must not be cut apart.
pub(crate) fn group_of(spec: &CodecSpec) -> usize {
    match spec {
        CodecSpec::Raw(_) | CodecSpec::Aqsgd(_) => 1,
        CodecSpec::Fixed(settings) => settings.group,
        CodecSpec::Tah(settings) => settings.tile,
        CodecSpec::Group(settings) => settings.group,
    }
}

/// The most bits that such a group takes in a message.
pub(crate) fn bits_of_group(spec: &CodecSpec) -> usize {
    /// Of a scale and a zero point; of a tile of `tah` also of its pivot and its width.
    const PARAMETERS: usize = 64;
    let bits = match spec {
        CodecSpec::Raw(settings) => return 8 * settings.dtype.size(),
        CodecSpec::Aqsgd(settings) => return 8 * settings.first.size(),
        CodecSpec::Fixed(settings) => settings.bits,
        CodecSpec::Tah(settings) => settings.high_bits,
        CodecSpec::Group(settings) => settings.bits,
    };
    group_of(spec) * bits as usize + PARAMETERS
}

/// The fastest kernels, or those of the name in `THINWIRE_ISA`.
pub(crate) fn kernels() -> Result<Execution, CollectiveError> {
    Execution::choose().map_err(|error| CollectiveError::Kernels(Box::new(error)))
}
