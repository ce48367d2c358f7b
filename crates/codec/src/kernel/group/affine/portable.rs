use half::f16;

use super::{Encode, exact_step, largest};
use crate::element::Element;
use crate::kernel::bits;
use crate::kernel::group::MAX_GROUP;
use crate::kernel::scan::{max, min, range};

/// Adding this rounds a float in `0..2^23` to an integer, half to even, and leaves that integer in the lowest bits.
const ROUNDER: f32 = 8_388_608.0; // 2^23

pub(super) fn encode<E: Element>(run: Encode<'_, E>) {
    let (mut values, mut codes) = ([0.0; MAX_GROUP], [0; MAX_GROUP]);
    let largest = largest(run.bits);
    let parameters = run.steps.iter_mut().zip(run.zeros);
    let wire = parameters.zip(run.codes.chunks_mut(bits::packed_len(run.group, run.bits)));
    for (x, ((step_wire, zero_wire), packed)) in run.x.chunks(run.group).zip(wire) {
        let (values, codes) = (&mut values[..x.len()], &mut codes[..x.len()]);
        E::widen(x, values);
        for value in values.iter_mut() {
            *value = run.scale.apply(*value);
        }
        let (low, high) = range(values);
        let step = f16::from_f32(exact_step(low, high, largest));
        let zero = f16::from_f32(run.zero_point.of(low, high, step.into(), largest));
        (*step_wire, *zero_wire) = (step.to_le_bytes(), zero.to_le_bytes());
        let (per_step, zero) = (1.0 / f32::from(step), f32::from(zero));
        for (code, value) in codes.iter_mut().zip(values) {
            let place = min(max(*value * per_step + zero, 0.0), largest);
            *code = (place + ROUNDER).to_bits() as u16;
        }
        bits::pack(run.bits, codes, packed);
    }
}
