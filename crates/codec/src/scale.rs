#![expect(clippy::inline_always, reason = "the one multiplication of every kernel")]

use crate::DecodeError;

/// The power of two that brings a tensor's largest magnitude into `[256, 512)`.
///
/// Then 16-bit parameters neither overflow nor vanish, whatever the tensor's own range. The paper's gradient
/// scaling (TAH-Quant, eq. 24) is the same idea with a constant tuned by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageScale {
    /// `k`: the codec works on `x * 2^-k`.
    exponent: i16,
}

impl MessageScale {
    /// The exponents a nonzero finite `f32` leads to: `floor(log2 m)` is in `-149..=127`.
    const MIN: i16 = -149 - Self::HEADROOM;
    const MAX: i16 = 127 - Self::HEADROOM;
    const HEADROOM: i16 = 8;

    /// No scaling.
    pub(crate) const ONE: Self = Self { exponent: 0 };

    /// `k = floor(log2 max_abs) - 8`, or 0 if `max_abs` is 0. `max_abs` is finite and not negative.
    pub(crate) fn of(max_abs: f32) -> Self {
        let bits = max_abs.to_bits();
        let floor_log2 = match (bits >> 23, bits & 0x007f_ffff) {
            (0, 0) => return Self::ONE,
            (0, subnormal) => subnormal.ilog2() as i16 - 149,
            (exponent, _) => exponent as i16 - 127,
        };
        Self { exponent: floor_log2 - Self::HEADROOM }
    }

    /// The scale of a received message.
    pub(crate) fn from_wire(exponent: i16) -> Result<Self, DecodeError> {
        if (Self::MIN..=Self::MAX).contains(&exponent) {
            Ok(Self { exponent })
        } else {
            Err(DecodeError::Scale { got: exponent, min: Self::MIN, max: Self::MAX })
        }
    }

    /// `k`.
    pub(crate) const fn exponent(self) -> i16 {
        self.exponent
    }

    /// `2^(k + 8)`, the least that the largest magnitude of a scaled tensor can be.
    pub(crate) fn least_maximum(self) -> f64 {
        self.unscaled(256.0)
    }

    /// `value * 2^k`, exactly.
    pub(crate) fn unscaled(self, value: f32) -> f64 {
        let Factors([first, second]) = self.unscaling();
        f64::from(value) * f64::from(first) * f64::from(second)
    }

    /// `2^-k`.
    pub(crate) fn scaling(self) -> Factors {
        Factors::power(-self.exponent)
    }

    /// `2^k`.
    pub(crate) fn unscaling(self) -> Factors {
        Factors::power(self.exponent)
    }

    /// `2^k`, if steps and zero points may be multiplied by it instead of the values that are made of them.
    ///
    /// Parameters are 0 or multiples of `2^-24` up to `2^16`. Whatever the codes, a product of at most 16 bits of code and
    /// a step, or of two parameters, is below `2^32`; of at most 8 bits, as many as the transform adds up, below `2^34`; the
    /// transform divides by at most `2^5`. No product but 0 is below `2^-48`. With `k` in this range nothing on the way to a
    /// decoded value overflows or is subnormal, and then a power of two changes no rounding.
    pub(crate) fn folded(self) -> Option<f32> {
        (-75..=75).contains(&self.exponent).then(|| self.unscaling().apply(1.0))
    }

    /// Multiplies by `2^k`; what would overflow becomes the largest finite value.
    pub(crate) fn undo(self, values: &mut [f32]) {
        let factors = self.unscaling();
        for value in values {
            *value = factors.apply(*value).clamp(f32::MIN, f32::MAX);
        }
    }
}

/// A power of two `2^e` as a product of two `f32`, since `e` reaches 157 either way: the one with the nearest exponent that
/// a normal number has, then the rest, which is 1 for all but tiny tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factors(pub(crate) [f32; 2]);

impl Factors {
    pub(crate) const ONE: Self = Self([1.0; 2]);

    fn power(e: i16) -> Self {
        let first = e.clamp(-126, 127);
        Self([first, e - first].map(|half| f32::from_bits(((half + 127) as u32) << 23)))
    }

    /// The power, if it is a normal `f32`.
    pub(crate) fn single(self) -> Option<f32> {
        (self.0[1] == 1.0).then_some(self.0[0])
    }

    /// The power, if its products with numbers between `2^-26` and `2^26` are normal too.
    pub(crate) fn moderate(self) -> Option<f32> {
        self.single().filter(|power| (2_f32.powi(-100)..=2_f32.powi(100)).contains(power))
    }

    /// Multiplies by the first, then by the second.
    #[inline(always)]
    pub(crate) fn apply(self, value: f32) -> f32 {
        value * self.0[0] * self.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponent_is_floor_log2_minus_8() {
        for e in -149..=127_i32 {
            let power = 2_f64.powi(e) as f32;
            assert_eq!(i32::from(MessageScale::of(power).exponent), e - 8, "2^{e}");
            if e > -149 {
                let below = f32::from_bits(power.to_bits() - 1);
                assert_eq!(i32::from(MessageScale::of(below).exponent), e - 9, "just below 2^{e}");
            }
        }
        assert_eq!(MessageScale::of(0.0), MessageScale::ONE);
        assert_eq!(MessageScale::of(f32::MAX).exponent, MessageScale::MAX);
        assert_eq!(MessageScale::of(f32::from_bits(1)).exponent, MessageScale::MIN);
    }

    #[test]
    fn scaling_is_exact_for_every_exponent() {
        for e in -149..=127_i32 {
            let m = 2_f64.powi(e) as f32;
            let mut values = [m, -m, 0.0];
            let scale = MessageScale::of(m);
            values = values.map(|value| scale.scaling().apply(value));
            assert_eq!(values, [256.0, -256.0, 0.0], "2^{e}");
            scale.undo(&mut values);
            assert_eq!(values, [m, -m, 0.0], "2^{e}");
        }
    }

    #[test]
    fn foreign_exponents_are_refused() {
        assert!(MessageScale::from_wire(MessageScale::MIN).is_ok());
        assert!(MessageScale::from_wire(MessageScale::MAX).is_ok());
        assert!(MessageScale::from_wire(MessageScale::MIN - 1).is_err());
        assert!(MessageScale::from_wire(MessageScale::MAX + 1).is_err());
    }
}
