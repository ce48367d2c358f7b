use std::fmt;

use half::f16;

use crate::element::Element;
use crate::kernel::{bits, group};
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::spec::Fields;
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
}

impl Default for FixedSettings {
    fn default() -> Self {
        Self { bits: 6, group: 64 }
    }
}

impl FixedSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["bits", "group"];
    const BITS_RANGE: &'static str = "a whole number from 2 to 16";
    const GROUP_RANGE: &'static str = "a power of two from 8 to 1024";

    pub(crate) fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        let default = Self::default();
        Ok(Self {
            bits: fields.number("bits", default.bits, Self::BITS_RANGE)?,
            group: fields.number("group", default.group, Self::GROUP_RANGE)?,
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
        write!(f, "fixed:bits={},group={}", self.bits, self.group)
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
pub(crate) struct Fixed {
    settings: FixedSettings,
    values: Vec<f32>,
    codes: Vec<u16>,
}

impl Fixed {
    /// For checked settings.
    pub(crate) fn new(settings: FixedSettings) -> Self {
        Self { settings, values: vec![0.0; settings.group], codes: vec![0; settings.group] }
    }

    /// The largest code, `2^(bits - 1) - 1`; codes are sent with this added.
    fn largest(&self) -> u16 {
        (1 << (self.settings.bits - 1)) - 1
    }

    /// Bytes of a whole group's codes.
    fn group_bytes(&self) -> usize {
        self.settings.group / 8 * self.settings.bits as usize
    }
}

impl Payload for Fixed {
    type Layout = FixedLayout;

    fn spec(&self) -> CodecSpec {
        CodecSpec::Fixed(self.settings)
    }

    fn layout(&self, shape: Shape) -> Result<FixedLayout, CodecError> {
        let too_large = CodecError::TooLarge { shape };
        let elements = shape.elements()?;
        let scales = elements.div_ceil(self.settings.group) * size_of::<f16>();
        let codes = elements.checked_mul(self.settings.bits as usize).ok_or(too_large.clone())?.div_ceil(8);
        let total = scales.checked_add(codes).ok_or(too_large)?;
        Ok(FixedLayout { scales, total })
    }

    fn len(layout: &FixedLayout) -> usize {
        layout.total
    }

    fn encode<E: Element>(&mut self, layout: &FixedLayout, x: &[E], scale: MessageScale, out: &mut [u8]) {
        let (bits, largest, group_bytes) = (self.settings.bits, self.largest(), self.group_bytes());
        let (scales, codes) = out.split_at_mut(layout.scales);
        let groups = x.chunks(self.settings.group);
        let wire = scales.as_chunks_mut().0.iter_mut().zip(codes.chunks_mut(group_bytes));
        for (x, (scale_bytes, code_bytes)) in groups.zip(wire) {
            let (values, codes) = (&mut self.values[..x.len()], &mut self.codes[..x.len()]);
            E::widen(x, values);
            scale.apply(values);
            let step = round_up(f32::max_abs(values) / f32::from(largest));
            *scale_bytes = step.to_le_bytes();
            group::quantize(values, step.into(), largest, codes);
            bits::pack(bits, codes, code_bytes);
        }
    }

    fn decode<E: Element>(
        &mut self,
        layout: &FixedLayout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let (bits, largest, group_bytes) = (self.settings.bits, self.largest(), self.group_bytes());
        let (scales, codes) = payload.split_at(layout.scales);
        bits::check_padding(out.len(), bits, codes, "code")?;
        let wire = scales.as_chunks().0.iter().zip(codes.chunks(group_bytes));
        for (tile, (out, (scale_bytes, code_bytes))) in
            out.chunks_mut(self.settings.group).zip(wire).enumerate()
        {
            let (values, codes) = (&mut self.values[..out.len()], &mut self.codes[..out.len()]);
            let step = f16::from_le_bytes(*scale_bytes);
            if !step.is_finite() || step.is_sign_negative() {
                return Err(DecodeError::Parameter { what: "scale", tile });
            }
            bits::unpack(bits, code_bytes, codes);
            group::dequantize(codes, step.into(), largest, values);
            scale.undo(values);
            E::narrow(values, out);
        }
        Ok(())
    }
}

/// The smallest f16 not below `step`, so that no value of the group is clipped. `step` is in `0..=512`.
fn round_up(step: f32) -> f16 {
    let nearest = f16::from_f32(step);
    if f32::from(nearest) < step { f16::from_bits(nearest.to_bits() + 1) } else { nearest }
}
