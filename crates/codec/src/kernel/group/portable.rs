#![expect(clippy::needless_pass_by_value, reason = "a run holds the only references to its outputs")]

use half::f16;

use super::{Decode, Encode, LEAST_STEP, MAX_GROUP, StepRounding, ZeroPoints, largest};
use crate::element::Element;
use crate::kernel::{bits, reciprocal, scan};

/// Adding this rounds a float of magnitude below `2^22` to an integer, half to even, and leaves that integer in
/// the lowest bits.
const ROUNDER: f32 = 12_582_912.0; // 1.5 * 2^23

pub(super) fn encode<E: Element>(run: Encode<'_, E>) {
    let (mut values, mut codes) = ([0.0; MAX_GROUP], [0; MAX_GROUP]);
    let limit = f32::from(largest(run.bits));
    let wire = run.steps.iter_mut().zip(run.codes.chunks_mut(bits::packed_len(run.group, run.bits)));
    for (x, (step, packed)) in run.x.chunks(run.group).zip(wire) {
        let (values, codes) = (&mut values[..x.len()], &mut codes[..x.len()]);
        E::widen(x, values);
        for value in values.iter_mut() {
            *value = run.scale.apply(*value);
        }
        let exact = scan::max_abs_f32(values) / limit;
        let rounded = match run.rounding {
            StepRounding::Up => round_up(exact),
            StepRounding::Nearest => f16::from_f32(scan::max(exact, LEAST_STEP)),
        };
        *step = rounded.to_le_bytes();
        let per_step = reciprocal(rounded.into());
        for (code, value) in codes.iter_mut().zip(values) {
            let rounded = (*value * per_step).clamp(-limit, limit) + ROUNDER;
            *code = (rounded.to_bits() as u16).wrapping_add(largest(run.bits));
        }
        bits::pack(run.bits, codes, packed);
    }
}

pub(super) fn decode<E: Element>(run: Decode<'_, E>) {
    let (mut values, mut codes) = ([0.0; MAX_GROUP], [0; MAX_GROUP]);
    let wire = run.steps.iter().zip(run.codes.chunks(bits::packed_len(run.group, run.bits)));
    for (i, (out, (step, packed))) in run.out.chunks_mut(run.group).zip(wire).enumerate() {
        let (values, codes) = (&mut values[..out.len()], &mut codes[..out.len()]);
        bits::unpack(run.bits, packed, codes);
        let step = f32::from(f16::from_le_bytes(*step));
        match run.zeros {
            ZeroPoints::Middle => {
                for (value, code) in values.iter_mut().zip(codes) {
                    *value = (i32::from(*code) - i32::from(largest(run.bits))) as f32 * step + 0.0;
                }
            }
            ZeroPoints::Each(zeros) => {
                let zero = step * f32::from(f16::from_le_bytes(zeros[i]));
                for (value, code) in values.iter_mut().zip(codes) {
                    *value = f32::from(*code) * step - zero;
                }
            }
        }
        run.scale.undo(values);
        E::narrow(values, out);
    }
}

/// The smallest f16 not below `step`, so that no value of the group is clipped. `step` is in `0..=512`.
fn round_up(step: f32) -> f16 {
    let nearest = f16::from_f32(step);
    if f32::from(nearest) < step { f16::from_bits(nearest.to_bits() + 1) } else { nearest }
}
