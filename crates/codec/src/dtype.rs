use std::fmt;
use std::str::FromStr;

use crate::error::SpecError;

const TWO_TO_128: f64 = f64::from_bits((1023 + 128) << (f64::MANTISSA_DIGITS - 1));

/// The number format of a tensor in memory or on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16: 11 significant bits, largest value 65504.
    F16,
    /// bfloat16: the upper half of an `f32`, 8 significant bits.
    BF16,
}

impl DType {
    /// Every format, widest first.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::BF16];

    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    /// The name used in codec specs: `f32`, `f16` or `bf16`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
        }
    }

    /// The smallest power of two beyond the largest finite value.
    pub(crate) const fn overflow(self) -> f64 {
        match self {
            Self::F32 | Self::BF16 => TWO_TO_128,
            Self::F16 => 65_536.0,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name);
            SpecError::unknown("dtype", text, &known)
        })
    }
}
