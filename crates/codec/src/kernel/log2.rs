//! A logarithm that is the same on every machine: comparisons of entropies decide widths, so a last bit that differs
//! between two math libraries would change a message.

/// `log2 (1 + t)` on `[0, 1]` as `t` times this polynomial in `t`, lowest coefficient first: the one whose largest
/// error is the smallest, `2.1e-6`.
pub(crate) const COEFFICIENTS: [f32; 6] =
    [1.442_553_2, -0.718_281_9, 0.458_270_82, -0.279_538_12, 0.123_451_486, -0.026_457_45];

/// `log2 v` for a normal `v > 0`, with an absolute error below `2.3e-6 + 1e-7 * |log2 v|`, exact for powers of two.
///
/// `v = 2^e (1 + t)` with `t` in `[0, 1)`; the polynomial is evaluated by Horner's rule.
#[inline]
pub(crate) fn log2(v: f32) -> f32 {
    let bits = v.to_bits();
    let e = (bits >> 23).cast_signed() - 127;
    let t = f32::from_bits(bits & 0x007f_ffff | 1.0_f32.to_bits()) - 1.0;
    let [rest @ .., last] = COEFFICIENTS;
    let quotient = rest.iter().rev().fold(last, |sum, coefficient| sum * t + coefficient);
    e as f32 + quotient * t
}

/// `log2 m` on `[1, 2]` as a polynomial in `m`, lowest coefficient first: of this degree the one whose largest error is the
/// smallest.
pub(crate) const COARSE: [f32; 4] = [-2.153_620_7, 3.047_884, -1.051_875, 0.158_248_7];

/// The largest error of [`COARSE`], rounding included.
pub(crate) const COARSE_ERROR: f32 = 6.4e-4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_error_is_below_the_stated_bound() {
        for bits in (1.0_f32.to_bits()..=2.0_f32.to_bits()).step_by(7) {
            let m = f32::from_bits(bits);
            let coarse = COARSE.iter().rev().fold(0.0, |sum, coefficient| sum * m + coefficient);
            assert!((coarse - m.log2()).abs() < COARSE_ERROR, "log2 {m}: {coarse}");
        }
    }

    #[test]
    fn error_is_below_the_stated_bound() {
        for bits in (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).step_by(97) {
            let v = f32::from_bits(bits);
            let exact = f64::from(v).log2();
            let error = (f64::from(log2(v)) - exact).abs();
            assert!(error < 2.3e-6 + 1e-7 * exact.abs(), "log2 {v}: off by {error}");
        }
    }

    #[test]
    fn powers_of_two_are_exact() {
        for e in -126..=127 {
            assert_eq!(log2(2_f32.powi(e)), e as f32);
        }
    }
}
