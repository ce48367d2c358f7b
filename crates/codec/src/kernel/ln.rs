//! A natural logarithm that is the same on every machine: comparisons of entropies decide widths, so a last bit
//! that differs between two math libraries would change a message.

/// `ln y` for a normal `y > 0`, with an absolute error below `3e-7 * max(1, |ln y|)`.
///
/// `y = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`. With `r = (m - 1) / (m + 1)`, so `|r| < 0.1716`,
/// `ln m = 2 artanh r = 2 r (1 + r^2/3 + r^4/5 + r^6/7 + r^8/9 + ..)`; the terms left out are below `2^-28` of the sum.
#[inline]
pub(crate) fn ln(y: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const FIFTH: f32 = 1.0 / 5.0;
    const SEVENTH: f32 = 1.0 / 7.0;
    const NINTH: f32 = 1.0 / 9.0;
    const THIRD: f32 = 1.0 / 3.0;
    let bits = y.to_bits();
    let e = bits.wrapping_sub(SQRT_HALF).cast_signed() >> 23;
    let m = f32::from_bits(bits.wrapping_sub((e << 23).cast_unsigned()));
    let r = (m - 1.0) / (m + 1.0);
    let r2 = r * r;
    let series = (((NINTH * r2 + SEVENTH) * r2 + FIFTH) * r2 + THIRD) * r2;
    let twice = r + r;
    e as f32 * std::f32::consts::LN_2 + (twice + twice * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_below_the_stated_bound() {
        for bits in (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).step_by(97) {
            let y = f32::from_bits(bits);
            let exact = f64::from(y).ln();
            let error = (f64::from(ln(y)) - exact).abs();
            assert!(error < 3e-7 * exact.abs().max(1.0), "ln {y}: off by {error}");
        }
    }

    #[test]
    fn powers_of_two_and_one() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(2.0), std::f32::consts::LN_2);
        assert_eq!(ln(0.5), -std::f32::consts::LN_2);
    }
}
