use std::fmt::{self, Debug};

use crate::{
    CodecError, CodecSpec, DType, DecodeError, EncodeError, ErrorStats, Shape, TensorView, TensorViewMut,
};

/// Bytes of a message, known from shape and settings alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedSize {
    /// Every message of this shape has this many bytes.
    Exact(usize),
    /// The length depends on the data, or on what is remembered of it.
    Between {
        /// The shortest message.
        least: usize,
        /// The longest.
        most: usize,
    },
}

impl PackedSize {
    /// The buffer length that holds any message of the shape, in bytes.
    pub const fn bound(self) -> usize {
        match self {
            Self::Exact(bytes) | Self::Between { most: bytes, .. } => bytes,
        }
    }

    /// Whether a message may have this many bytes.
    pub const fn admits(self, bytes: usize) -> bool {
        match self {
            Self::Exact(exact) => bytes == exact,
            Self::Between { least, most } => least <= bytes && bytes <= most,
        }
    }
}

/// A tensor in, bytes out, and back.
///
/// Both directions need `&mut self` because a codec value owns its scratch memory: once the largest message has
/// passed, nothing is allocated (on several [`Execution::threads`](crate::Execution::threads), a kilobyte or so by the pool's
/// queue once in 63 messages). Give each thread its own.
pub trait Codec: Debug + Send {
    /// The settings. Their text, [`CodecSpec`]'s `Display`, builds the same codec again.
    fn spec(&self) -> CodecSpec;

    /// Bytes of a message for a tensor of this shape and number format.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] if the message cannot be counted.
    fn packed_size(&self, shape: Shape, dtype: DType) -> Result<PackedSize, CodecError>;

    /// Bytes that no message has more of, of tensors up to `largest` in each of its extents.
    ///
    /// # Errors
    /// As [`Codec::packed_size`].
    fn longest_message(&self, largest: Shape, dtype: DType) -> Result<usize, CodecError> {
        self.packed_size(largest, dtype).map(PackedSize::bound)
    }

    /// Bytes of most messages of this shape: of a codec that [remembers](crate::SampleMemory) samples, of those it has seen
    /// before; of the others the bound.
    ///
    /// # Errors
    /// As [`Codec::packed_size`].
    fn usual_size(&self, shape: Shape, dtype: DType) -> Result<usize, CodecError> {
        self.packed_size(shape, dtype).map(PackedSize::bound)
    }

    /// Writes `x` as one message to the front of `out` and returns its length in bytes.
    ///
    /// The same tensor gives the same bytes, on every machine; of a codec that [remembers](crate::SampleMemory) samples, if it
    /// remembers the same. To it, the samples are the numbers 0, 1, ….
    ///
    /// # Errors
    /// [`EncodeError::NonFinite`] with the first bad index, [`EncodeError::BufferTooSmall`],
    /// [`EncodeError::Shape`]: `out` is untouched then. [`EncodeError::Memory`].
    fn encode(&mut self, x: TensorView<'_>, out: &mut [u8]) -> Result<usize, EncodeError>;

    /// As [`Codec::encode`], of samples that have names: `ids`, one a sample, which stay the same whenever a sample comes
    /// again. Codecs that do not [remember](crate::SampleMemory) samples make nothing of them.
    ///
    /// # Errors
    /// As [`Codec::encode`]; [`EncodeError::Samples`] if there are more or fewer names than samples.
    fn encode_samples(
        &mut self,
        ids: &[u64],
        x: TensorView<'_>,
        out: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let (samples, got) = (x.shape().samples, ids.len());
        if samples == got { self.encode(x, out) } else { Err(EncodeError::Samples { samples, got }) }
    }

    /// Reads one message, exactly `bytes`, into `out`, whose number format may differ from the sender's.
    ///
    /// Decoded values are always finite. A value that rounds beyond the largest finite one of `out`'s format
    /// becomes that largest one.
    ///
    /// # Errors
    /// [`DecodeError`]; `out` then holds unspecified finite or old values.
    fn decode(&mut self, bytes: &[u8], out: TensorViewMut<'_>) -> Result<(), DecodeError>;

    /// Decodes a message of `x` and compares, without changing anything the caller holds. A codec that
    /// [remembers](crate::SampleMemory) samples takes the message it has encoded last as what its receiver makes of it, any other
    /// as [`Codec::decode`] would, and remembers nothing of it.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    fn measure(&mut self, x: TensorView<'_>, bytes: &[u8]) -> Result<ErrorStats, DecodeError>;
}

/// The codec byte of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CodecId {
    /// [`RawSettings`](crate::RawSettings) with 32-bit values on the wire.
    RawF32 = 1,
    /// [`RawSettings`](crate::RawSettings) with half-precision values on the wire.
    RawF16 = 2,
    /// [`RawSettings`](crate::RawSettings) with bfloat16 values on the wire.
    RawBF16 = 3,
    /// [`FixedSettings`](crate::FixedSettings).
    Fixed = 16,
    /// [`TahSettings`](crate::TahSettings).
    Tah = 32,
    /// [`AqsgdSettings`](crate::AqsgdSettings).
    Aqsgd = 48,
    /// [`GroupSettings`](crate::GroupSettings).
    Group = 64,
}

impl CodecId {
    const ALL: [Self; 7] =
        [Self::RawF32, Self::RawF16, Self::RawBF16, Self::Fixed, Self::Tah, Self::Aqsgd, Self::Group];

    /// The wire's number format, if values are sent as they are.
    pub const fn raw_dtype(self) -> Option<DType> {
        match self {
            Self::RawF32 => Some(DType::F32),
            Self::RawF16 => Some(DType::F16),
            Self::RawBF16 => Some(DType::BF16),
            Self::Fixed | Self::Tah | Self::Aqsgd | Self::Group => None,
        }
    }

    /// The codec's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RawF32 => "raw f32",
            Self::RawF16 => "raw f16",
            Self::RawBF16 => "raw bf16",
            Self::Fixed => "fixed",
            Self::Tah => "tah",
            Self::Aqsgd => "aqsgd",
            Self::Group => "group",
        }
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<CodecId> for u8 {
    fn from(id: CodecId) -> Self {
        id as Self
    }
}

impl TryFrom<u8> for CodecId {
    /// The byte, which names no codec of this build.
    type Error = u8;

    fn try_from(byte: u8) -> Result<Self, u8> {
        Self::ALL.into_iter().find(|&id| id as u8 == byte).ok_or(byte)
    }
}
