use thinwire_codec::{
    Codec, CodecSpec, DType, DecodeError, EncodeError, Execution, Shape, TensorView, TensorViewMut,
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

    /// Appends the message of `x`.
    pub(crate) fn encode(
        &mut self,
        codec: usize,
        x: &[f32],
        message: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let (codec, shape) = (&mut self.built[codec], Shape::new(1, 1, x.len()));
        let start = message.len();
        message.resize(start + codec.packed_size(shape, DType::F32)?.bound(), 0);
        let bytes = codec.encode(TensorView::new(shape, x)?, &mut message[start..])?;
        message.truncate(start + bytes);
        Ok(())
    }

    pub(crate) fn decode(
        &mut self,
        codec: usize,
        message: &[u8],
        out: &mut [f32],
    ) -> Result<(), DecodeError> {
        let shape = Shape::new(1, 1, out.len());
        self.built[codec].decode(message, TensorViewMut::new(shape, out)?)
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

/// The fastest kernels, or those of the name in `THINWIRE_ISA`.
pub(crate) fn kernels() -> Result<Execution, CollectiveError> {
    Execution::choose().map_err(|error| CollectiveError::Kernels(Box::new(error)))
}
