use std::fmt;

use super::codec::Aqsgd;
use crate::spec::Fields;
use crate::threads::Workers;
use crate::{Codec, DType, Execution, FixedSettings, SampleMemory, SpecError};

/// AQ-SGD: `aqsgd:bits=4,group=64,keep=f32,first=f32`.
///
/// Both ends remember what the receiver last had of every sample. A sample that comes for the first time is sent raw, later
/// its difference to that as [`FixedSettings`] quantize it (Wang et al., *Fine-tuning Language Models over Slow Networks
/// using Activation Quantization with Guarantees*, algorithm 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AqsgdSettings {
    /// `bits`: bits of a code, 2 to 16.
    pub bits: u32,
    /// `group`: values that share a scale, a power of two from 8 to 1024.
    pub group: usize,
    /// `keep`: the number format in memory, f32 or bf16.
    pub keep: DType,
    /// `first`: the number format on the wire of a sample that comes for the first time, f32 or bf16.
    pub first: DType,
}

impl Default for AqsgdSettings {
    fn default() -> Self {
        Self { bits: 4, group: 64, keep: DType::F32, first: DType::F32 }
    }
}

impl AqsgdSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["bits", "group", "keep", "first"];
    const KEEP: &'static str = "f32 or bf16: what is kept grows with every difference and could overflow f16";
    const FIRST: &'static str = "f32 or bf16";

    pub(crate) fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        let default = Self::default();
        let FixedSettings { bits, group, .. } = FixedSettings::from_fields_with_bits(fields, default.bits)?;
        let dtype = |key, default| fields.text(key).map_or(Ok(default), str::parse);
        Ok(Self { bits, group, keep: dtype("keep", default.keep)?, first: dtype("first", default.first)? })
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        for (key, dtype, range) in [("keep", self.keep, Self::KEEP), ("first", self.first, Self::FIRST)] {
            if dtype == DType::F16 {
                return Err(SpecError::value(key, &dtype, range));
            }
        }
        self.difference().check()
    }

    /// How differences are quantized.
    pub(crate) fn difference(&self) -> FixedSettings {
        FixedSettings { bits: self.bits, group: self.group, raw_below: 0 }
    }

    /// The codec, with what it has sent remembered in `sent` and what it has received in `received`. A codec that only
    /// encodes, or only decodes, leaves the other alone.
    ///
    /// # Errors
    /// As [`CodecSpec::build_with`](crate::CodecSpec::build_with).
    pub fn build(
        &self,
        execution: Execution,
        sent: Box<dyn SampleMemory>,
        received: Box<dyn SampleMemory>,
    ) -> Result<Box<dyn Codec>, SpecError> {
        self.check()?;
        Ok(Box::new(Aqsgd::new(*self, Workers::start(execution)?, sent, received)))
    }
}

impl fmt::Display for AqsgdSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bits, group, keep, first } = self;
        write!(f, "aqsgd:bits={bits},group={group},keep={keep},first={first}")
    }
}
