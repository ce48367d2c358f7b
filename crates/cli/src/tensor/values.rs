//! Owned values of the number formats that codecs take.

use half::{bf16, f16};
use thinwire_codec as codec;
use thinwire_codec::DType;

/// The values of a tensor.
#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
}

impl Values {
    pub(super) fn zeros(dtype: DType, len: usize) -> Self {
        match dtype {
            DType::F32 => Self::F32(vec![0.0; len]),
            DType::F16 => Self::F16(vec![f16::ZERO; len]),
            DType::BF16 => Self::BF16(vec![bf16::ZERO; len]),
        }
    }

    /// Little-endian values; an incomplete one at the end is left out.
    pub(super) fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Self {
        let words = || bytes.as_chunks().0.iter();
        match dtype {
            DType::F32 => {
                Self::F32(bytes.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect())
            }
            DType::F16 => Self::F16(words().map(|&word| f16::from_le_bytes(word)).collect()),
            DType::BF16 => Self::BF16(words().map(|&word| bf16::from_le_bytes(word)).collect()),
        }
    }

    pub(super) fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::BF16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    pub(super) fn dtype(&self) -> DType {
        self.borrow().dtype()
    }

    pub(super) fn borrow(&self) -> codec::Values<'_> {
        match self {
            Self::F32(values) => codec::Values::F32(values),
            Self::F16(values) => codec::Values::F16(values),
            Self::BF16(values) => codec::Values::BF16(values),
        }
    }

    pub(super) fn borrow_mut(&mut self) -> codec::ValuesMut<'_> {
        match self {
            Self::F32(values) => codec::ValuesMut::F32(values),
            Self::F16(values) => codec::ValuesMut::F16(values),
            Self::BF16(values) => codec::ValuesMut::BF16(values),
        }
    }
}
