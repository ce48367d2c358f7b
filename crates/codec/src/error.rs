use std::fmt;

use thiserror::Error;

use crate::{CodecId, DType, MemoryError, Shape};

/// A shape that a tensor or a message cannot have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The caller's slice is longer or shorter than the shape.
    #[error("shape {shape} has {expected} values, the slice has {got}")]
    Length {
        /// The shape named by the caller.
        shape: Shape,
        /// Values of that shape.
        expected: usize,
        /// Values in the slice.
        got: usize,
    },
    /// The number of values, of tiles or of bytes is beyond what this machine or the format can count.
    #[error("shape {shape} is too large")]
    TooLarge {
        /// The shape named by the caller.
        shape: Shape,
    },
}

/// Why a tensor was not encoded. Nothing was written to the output buffer, [`EncodeError::Memory`] apart.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The tensor holds a NaN or an infinity; this is the first.
    #[error("value {index} of the tensor is {value}: only finite values can be sent")]
    NonFinite {
        /// Position in the row-major tensor.
        index: usize,
        /// The value found there.
        value: f32,
    },
    /// The output buffer is shorter than [`Codec::packed_size`](crate::Codec::packed_size).
    #[error("the message needs {needed} bytes, the buffer has {got}")]
    BufferTooSmall {
        /// Bytes of the message.
        needed: usize,
        /// Bytes of the buffer.
        got: usize,
    },
    /// There are not as many names as samples.
    #[error("{got} names for {samples} samples")]
    Samples {
        /// Samples of the tensor.
        samples: usize,
        /// Names given.
        got: usize,
    },
    /// What is kept of the samples cannot be read or replaced. Of some samples it may have been replaced already: the two
    /// ends of a boundary cannot go on with it. What the output buffer holds is unspecified.
    #[error("the memory of the samples sent")]
    Memory(#[from] MemoryError),
    /// The message for this shape would be too large.
    #[error(transparent)]
    Shape(#[from] CodecError),
}

/// Why a message was not decoded. What the output tensor holds afterwards is unspecified (each value is
/// either the old one or a finite new one).
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message is cut short, too long, or of another shape or setting.
    #[error("the message has {got} bytes, this shape and codec need {expected}")]
    Length {
        /// Bytes that the shape and the codec's settings need.
        expected: usize,
        /// Bytes of the message.
        got: usize,
    },
    /// The sender writes another version of the message format.
    #[error("message format version {got}, this build reads version {expected}")]
    Version {
        /// The version this build reads.
        expected: u8,
        /// The version byte of the message.
        got: u8,
    },
    /// The message was written by another codec.
    #[error("the message was written by codec {got}, expected {expected} ({})", u8::from(*expected))]
    Codec {
        /// The codec that was asked to decode.
        expected: CodecId,
        /// The codec byte of the message.
        got: u8,
    },
    /// The message scale is one that no tensor has, or that this codec does not use.
    #[error("message scale 2^{got} is outside 2^{min}..=2^{max}")]
    Scale {
        /// The exponent found.
        got: i16,
        /// The smallest valid exponent.
        min: i16,
        /// The largest valid exponent.
        max: i16,
    },
    /// A value is of this magnitude or more, which the caller's number format cannot hold.
    #[error("a value of magnitude {magnitude:e} or more does not fit in {dtype}")]
    Range {
        /// A lower bound of the largest magnitude.
        magnitude: f64,
        /// The caller's number format.
        dtype: DType,
    },
    /// A raw value on the wire is NaN or infinite.
    #[error("value {index} of the message is not finite")]
    NonFinite {
        /// Position in the row-major tensor.
        index: usize,
    },
    /// A parameter on the wire is one that no encoder writes: a scale or zero point that is not finite, a negative
    /// scale, the pivot of a tile that has none.
    #[error("the {what} of tile {tile} is invalid")]
    Parameter {
        /// What was read: `scale`, `zero point` or `pivot`.
        what: &'static str,
        /// The tile or group, counted over the message.
        tile: usize,
    },
    /// A sample's width map does not hold the number of high-width tiles that the settings ask for.
    #[error("sample {sample}: the width map marks {got} tiles, the settings ask for {expected}")]
    WidthMap {
        /// The sample.
        sample: usize,
        /// High-width allocation tiles by the settings.
        expected: usize,
        /// Bits set in the map.
        got: usize,
    },
    /// The two ends of a boundary do not remember the same of a sample. Nothing was remembered of the message.
    #[error(
        "sample {sample}: the sender remembers {}, the receiver {}: resume both ends from the same checkpoint, or start anew",
        remembered(*sender), remembered(*receiver)
    )]
    Parted {
        /// The sample's name.
        sample: u64,
        /// CRC-32 of what the sender keeps of it; `None` if it sends it for the first time.
        sender: Option<u32>,
        /// CRC-32 of what the receiver keeps of it; `None` if it has not seen it.
        receiver: Option<u32>,
    },
    /// What is kept of the samples cannot be read or replaced. Of some samples it may have been replaced already.
    #[error("the memory of the samples received")]
    Memory(#[from] MemoryError),
    /// Bits that the format keeps zero are set.
    #[error("unused bits of the {section} section are not zero")]
    UnusedBits {
        /// The section of the message.
        section: &'static str,
    },
    /// The message for this shape would be too large.
    #[error(transparent)]
    Shape(#[from] CodecError),
}

fn remembered(checksum: Option<u32>) -> String {
    checksum.map_or_else(|| "nothing".to_owned(), |checksum| format!("a state of checksum {checksum:08x}"))
}

/// Why a codec spec was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A codec, setting or value that does not exist.
    #[error("unknown {kind} `{name}`: did you mean `{nearest}`? (known: {known})")]
    Unknown {
        /// What was looked up: `codec`, `setting of tah`, `dtype`.
        kind: String,
        /// The name found.
        name: String,
        /// The known name most like it.
        nearest: String,
        /// All known names.
        known: String,
    },
    /// The text between two commas is not `key=value`.
    #[error("`{text}` is not of the form key=value")]
    Syntax {
        /// The text found.
        text: String,
    },
    /// Settings for a name that has none, such as `f32`.
    #[error("`{codec}` takes no settings")]
    NoSettings {
        /// The name.
        codec: String,
    },
    /// The same setting appears twice.
    #[error("`{key}` is set twice")]
    Duplicate {
        /// The setting.
        key: String,
    },
    /// The system gives no such number of threads.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number asked for.
        threads: usize,
        /// What the system says.
        reason: String,
    },
    /// A value that is not a number or lies outside the setting's range.
    #[error("`{key}={value}`: must be {range}")]
    Value {
        /// The setting.
        key: &'static str,
        /// The value found.
        value: String,
        /// The values allowed.
        range: String,
    },
}

impl SpecError {
    /// A name that is none of `known`, of which the error names the nearest one.
    pub fn unknown(kind: impl Into<String>, name: &str, known: &[&str]) -> Self {
        let nearest = known.iter().min_by_key(|known| strsim::damerau_levenshtein(name, known));
        Self::Unknown {
            kind: kind.into(),
            name: name.to_owned(),
            nearest: nearest.copied().unwrap_or_default().to_owned(),
            known: known.join(", "),
        }
    }

    /// A value of a setting that is outside `range`.
    pub fn value(key: &'static str, value: &dyn fmt::Display, range: impl Into<String>) -> Self {
        Self::Value { key, value: value.to_string(), range: range.into() }
    }
}
