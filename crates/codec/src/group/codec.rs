use half::f16;

use super::{GroupSettings, Quantizer};
use crate::element::Element;
use crate::fixed::is_step;
use crate::kernel::bits;
use crate::kernel::group::affine::{self, ZeroPoint};
use crate::kernel::group::{self, StepRounding, ZeroPoints};
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::threads::Workers;
use crate::{CodecError, CodecSpec, DecodeError, Shape};

/// Bytes of each of the parameter sections, of both together, and of the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupLayout {
    section: usize,
    parameters: usize,
    total: usize,
}

/// The payload of group messages: all scales, all zero points (not of the symmetric quantizer), then all codes.
#[derive(Debug)]
pub(crate) struct Group(pub(crate) GroupSettings);

impl Group {
    /// Values of the part of a message that each thread gets: whole groups, so that its codes begin at a byte.
    fn part(&self, workers: &Workers, values: usize) -> usize {
        values.div_ceil(workers.worth(values)).next_multiple_of(self.0.group)
    }

    fn has_zero_points(&self) -> bool {
        self.0.quantizer != Quantizer::Symmetric
    }

    fn encode_symmetric<E: Element>(
        &self,
        workers: &Workers,
        x: &[E],
        scale: MessageScale,
        [steps, codes]: [&mut [u8]; 2],
    ) {
        let GroupSettings { bits, group, .. } = self.0;
        let part = self.part(workers, x.len());
        let steps = steps.as_chunks_mut().0.chunks_mut(part / group);
        let wire = steps.zip(codes.chunks_mut(bits::packed_len(part, bits)));
        let (rounding, scale) = (StepRounding::Nearest, scale.scaling());
        workers.for_each(x.chunks(part).zip(wire), |(x, (steps, codes))| {
            workers.isa.run(group::Encode { x, group, bits, rounding, scale, steps, codes });
        });
    }

    fn encode_affine<E: Element>(
        &self,
        workers: &Workers,
        x: &[E],
        scale: MessageScale,
        zero_point: ZeroPoint,
        [steps, zeros, codes]: [&mut [u8]; 3],
    ) {
        let GroupSettings { bits, group, .. } = self.0;
        let part = self.part(workers, x.len());
        let steps = steps.as_chunks_mut().0.chunks_mut(part / group);
        let zeros = zeros.as_chunks_mut().0.chunks_mut(part / group);
        let wire = steps.zip(zeros).zip(codes.chunks_mut(bits::packed_len(part, bits)));
        let scale = scale.scaling();
        workers.for_each(x.chunks(part).zip(wire), |(x, ((steps, zeros), codes))| {
            workers.isa.run(affine::Encode { x, group, bits, zero_point, scale, steps, zeros, codes });
        });
    }
}

impl Payload for Group {
    type Layout = GroupLayout;

    fn spec(&self) -> CodecSpec {
        CodecSpec::Group(self.0)
    }

    fn layout(&self, shape: Shape) -> Result<GroupLayout, CodecError> {
        let too_large = CodecError::TooLarge { shape };
        let elements = shape.elements()?;
        // At most as many bytes as the tensor has values, twice that with zero points.
        let section = elements.div_ceil(self.0.group) * size_of::<f16>();
        let sections = if self.has_zero_points() { 2 } else { 1 };
        let parameters = section.checked_mul(sections).ok_or(too_large.clone())?;
        let codes = elements.checked_mul(self.0.bits as usize).ok_or(too_large.clone())?.div_ceil(8);
        let total = parameters.checked_add(codes).ok_or(too_large)?;
        Ok(GroupLayout { section, parameters, total })
    }

    fn len(layout: &GroupLayout) -> usize {
        layout.total
    }

    fn encode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &GroupLayout,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    ) {
        let (parameters, codes) = out.split_at_mut(layout.parameters);
        let (steps, zeros) = parameters.split_at_mut(layout.section);
        match self.0.quantizer {
            Quantizer::Symmetric => self.encode_symmetric(workers, x, scale, [steps, codes]),
            Quantizer::Naive => {
                self.encode_affine(workers, x, scale, ZeroPoint::Naive, [steps, zeros, codes]);
            }
            Quantizer::ZeroAware => {
                self.encode_affine(workers, x, scale, ZeroPoint::Aware, [steps, zeros, codes]);
            }
        }
    }

    fn decode<E: Element>(
        &mut self,
        workers: &Workers,
        layout: &GroupLayout,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        let GroupSettings { bits, group, .. } = self.0;
        let (parameters, codes) = payload.split_at(layout.parameters);
        let (steps, zeros) = parameters.split_at(layout.section);
        let (steps, zeros) = (steps.as_chunks().0, zeros.as_chunks().0);
        bits::check_padding(out.len(), bits, codes, "code")?;
        check(steps, "scale", is_step)?;
        check(zeros, "zero point", |wire| f16::from_le_bytes(wire).is_finite())?;
        let zeros = if self.has_zero_points() { ZeroPoints::Each(zeros) } else { ZeroPoints::Middle };
        let part = self.part(workers, out.len());
        let wire = steps.chunks(part / group).zip(codes.chunks(bits::packed_len(part, bits)));
        workers.for_each(out.chunks_mut(part).zip(wire).enumerate(), |(i, (out, (steps, codes)))| {
            let zeros = zeros.split_at(i * (part / group)).1;
            workers.isa.run(group::Decode { steps, zeros, codes, group, bits, scale, out });
        });
        Ok(())
    }
}

/// Refuses parameters of which one is not `valid`.
fn check(wire: &[[u8; 2]], what: &'static str, valid: fn([u8; 2]) -> bool) -> Result<(), DecodeError> {
    match wire.iter().position(|wire| !valid(*wire)) {
        Some(tile) => Err(DecodeError::Parameter { what, tile }),
        None => Ok(()),
    }
}
