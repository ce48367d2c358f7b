use std::fmt;

use half::f16;

use crate::element::Element;
use crate::kernel::bits;
use crate::kernel::group::{self, StepRounding, ZeroPoints};
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::spec::{Fields, RAW_BELOW, write_raw_below};
use crate::threads::Workers;
use crate::{CodecError, CodecSpec, DecodeError, Shape, SpecError};

/// Symmetric fixed point: `fixed:bits=6,group=64`.
///
/// Each group of consecutive values has one scale, its largest magnitude over the largest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedSettings {
    /// `bits`: bits of a code, 2 to 16.
    pub bits: u32,
    /// `group`: values that share a scale, a power of two from 8 to 1024.
    pub group: usize,
    /// `raw_below`: tensors of fewer values than this are sent raw, in their own number format.
    pub raw_below: usize,
}

impl Default for FixedSettings {
    fn default() -> Self {
        Self { bits: 6, group: 64, raw_below: 0 }
    }
}

impl FixedSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["bits", "group", RAW_BELOW];
    const BITS_RANGE: &'static str = "a whole number from 2 to 16";
    const GROUP_RANGE: &'static str = "a power of two from 8 to 1024";

    pub(crate) fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        Self::from_fields_with_bits(fields, Self::default().bits)
    }

    /// The same where another number of bits is the default.
    pub(crate) fn from_fields_with_bits(fields: &Fields<'_>, bits: u32) -> Result<Self, SpecError> {
        let default = Self::default();
        Ok(Self {
            bits: fields.number("bits", bits, Self::BITS_RANGE)?,
            group: fields.number("group", default.group, Self::GROUP_RANGE)?,
            raw_below: fields.raw_below()?,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if !(2..=16).contains(&self.bits) {
            return Err(SpecError::value("bits", &self.bits, Self::BITS_RANGE));
        }
        if !self.group.is_power_of_two() || !(8..=1024).contains(&self.group) {
            return Err(SpecError::value("group", &self.group, Self::GROUP_RANGE));
        }
        Ok(())
    }
}

impl fmt::Display for FixedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fixed:bits={},group={}", self.bits, self.group)?;
        write_raw_below(f, self.raw_below)
    }
}

/// Bytes of the scale section and of the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedLayout {
    scales: usize,
    total: usize,
}

/// The payload of fixed-point messages: all scales, then all codes.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) FixedSettings);

impl Fixed {
    /// Values of the part of a message that each thread gets: whole groups, so that its codes begin at a byte.
    fn part(&self, workers: &Workers, values: usize) -> usize {
        values.div_ceil(workers.worth(values)).next_multiple_of(self.0.group)
    }
}

impl Payload for Fixed {
    type Layout = FixedLayout;

    fn spec(&self) -> CodecSpec {
        CodecSpec::Fixed(self.0)
    }

    fn layout(&self, shape: Shape) -> Result<FixedLayout, CodecError> {
        let too_large = CodecError::TooLarge { shape };
        let elements = shape.elements()?;
        let scales = elements.div_ceil(self.0.group) * size_of::<f16>();
        let codes = elements.checked_mul(self.0.bits as usize).ok_or(too_large.clone())?.div_ceil(8);
        let total = scales.checked_add(codes).ok_or(too_large)?;
        Ok(FixedLayout { scales, total })
    }

    fn len(layout: &FixedLayout) -> usize {
        layout.total
    }

    fn encode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &FixedLayout,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    ) {
        let FixedSettings { bits, group, .. } = self.0;
        let part = self.part(workers, x.len());
        let (steps, codes) = out.split_at_mut(layout.scales);
        let steps = steps.as_chunks_mut().0.chunks_mut(part / group);
        let wire = steps.zip(codes.chunks_mut(bits::packed_len(part, bits)));
        workers.for_each(x.chunks(part).zip(wire), |(x, (steps, codes))| {
            let rounding = StepRounding::Up;
            workers.isa.run(group::Encode { x, group, bits, rounding, scale: scale.scaling(), steps, codes });
        });
    }

    fn decode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &FixedLayout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let FixedSettings { bits, group, .. } = self.0;
        let (steps, codes) = payload.split_at(layout.scales);
        let steps = steps.as_chunks().0;
        bits::check_padding(out.len(), bits, codes, "code")?;
        if let Some(tile) = steps.iter().position(|step| !is_step(*step)) {
            return Err(DecodeError::Parameter { what: "scale", tile });
        }
        let part = self.part(workers, out.len());
        let wire = steps.chunks(part / group).zip(codes.chunks(bits::packed_len(part, bits)));
        workers.for_each(out.chunks_mut(part).zip(wire), |(out, (steps, codes))| {
            let zeros = ZeroPoints::Middle;
            workers.isa.run(group::Decode { steps, zeros, codes, group, bits, scale, out });
        });
        Ok(())
    }
}

/// Finite, and without a sign.
pub(crate) fn is_step(wire: [u8; 2]) -> bool {
    u16::from_le_bytes(wire) < f16::INFINITY.to_bits()
}
