//! Functions of lanes: the exponential, and maps of whole slices through a function of vectors.

use pulp::{Arch, Simd, WithSimd};

/// Elements of a slice that one task maps.
const TASK: usize = 1 << 14;

/// The least `x` that [`exp`] tells from minus infinity: about the least with a normal result.
const EXP_MIN: f32 = -87.33;
/// The largest that it tells from infinity.
const EXP_MAX: f32 = 88.3;

/// `e^x`; 0 below -87.33 and infinity above 88.3. NaN stays NaN. The relative error is below 2e-7.
///
/// `x = n ln 2 + r`, the polynomial for `e^r` is that of Cephes' `expf` (Moshier), and `n` goes into the exponent.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const POLYNOMIAL: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    /// Adding `1.5 * 2^23` rounds to an integer, which the lowest bits then hold.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts; the product of the first with any `n` is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

    let s = |value: f32| simd.splat_f32s(value);
    let clamped = simd.min_f32s(simd.max_f32s(x, s(EXP_MIN)), s(EXP_MAX));
    let rounded = simd.mul_add_e_f32s(clamped, s(std::f32::consts::LOG2_E), s(ROUND));
    let n = simd.sub_f32s(rounded, s(ROUND));
    let r = simd.mul_add_e_f32s(n, s(-LN_2[0]), clamped);
    let r = simd.mul_add_e_f32s(n, s(-LN_2[1]), r);
    let mut p = s(POLYNOMIAL[0]);
    for &coefficient in &POLYNOMIAL[1..] {
        p = simd.mul_add_e_f32s(p, r, s(coefficient));
    }
    let p = simd.add_f32s(simd.mul_add_e_f32s(p, simd.mul_f32s(r, r), r), s(1.0));
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(rounded), simd.splat_u32s(23));
    let value = simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(p), exponent));
    let value = simd.select_f32s(simd.less_than_f32s(x, s(EXP_MIN)), s(0.0), value);
    let value = simd.select_f32s(simd.greater_than_f32s(x, s(EXP_MAX)), s(f32::INFINITY), value);
    simd.select_f32s(simd.equal_f32s(x, x), value, x)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    simd.div_f32s(one, simd.add_f32s(one, exp(simd, simd.neg_f32s(x))))
}

/// A function from `I` numbers, and the `O` that its results replace, to those results.
pub(crate) trait Lanewise<const I: usize, const O: usize>: Copy + Send + Sync {
    /// Implementations are `#[inline(always)]`.
    fn apply<S: Simd>(self, simd: S, inputs: [S::f32s; I], old: [S::f32s; O]) -> [S::f32s; O];
}

/// Maps every element; the tasks share slices of equal length.
pub(crate) fn map<K: Lanewise<I, O>, const I: usize, const O: usize>(
    function: K,
    inputs: [&[f32]; I],
    outputs: [&mut [f32]; O],
) {
    let len = outputs[0].len();
    if len <= TASK {
        return Arch::new().dispatch(Piece { function, inputs, outputs });
    }
    let middle = (len / 2).next_multiple_of(TASK);
    let inputs = inputs.map(|slice| slice.split_at(middle));
    let (mut left, mut right) = (Vec::with_capacity(O), Vec::with_capacity(O));
    for slice in outputs {
        let (a, b) = slice.split_at_mut(middle);
        left.push(a);
        right.push(b);
    }
    let whole = |outputs: Vec<_>| <[_; O]>::try_from(outputs).expect("one of each output was pushed");
    let (left, right) = (whole(left), whole(right));
    rayon::join(|| map(function, inputs.map(|i| i.0), left), || map(function, inputs.map(|i| i.1), right));
}

/// The part of a map that one task computes.
struct Piece<'a, K, const I: usize, const O: usize> {
    function: K,
    inputs: [&'a [f32]; I],
    outputs: [&'a mut [f32]; O],
}

impl<K: Lanewise<I, O>, const I: usize, const O: usize> WithSimd for Piece<'_, K, I, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        apply(simd, self.function, self.inputs, self.outputs);
    }
}

/// Maps every element, on this thread.
#[inline(always)]
pub(crate) fn apply<S: Simd, K: Lanewise<I, O>, const I: usize, const O: usize>(
    simd: S,
    function: K,
    inputs: [&[f32]; I],
    outputs: [&mut [f32]; O],
) {
    let len = outputs[0].len();
    let inputs = inputs.map(|slice| S::as_simd_f32s(&slice[..len]));
    let outputs = outputs.map(|slice| S::as_mut_simd_f32s(&mut slice[..len]));
    let (mut x, mut y) = ([simd.splat_f32s(0.0); I], [simd.splat_f32s(0.0); O]);
    for at in 0..len / S::F32_LANES {
        for i in 0..I {
            x[i] = inputs[i].0[at];
        }
        for o in 0..O {
            y[o] = outputs[o].0[at];
        }
        y = function.apply(simd, x, y);
        for o in 0..O {
            outputs[o].0[at] = y[o];
        }
    }
    for i in 0..I {
        x[i] = simd.partial_load_f32s(inputs[i].1);
    }
    for o in 0..O {
        y[o] = simd.partial_load_f32s(outputs[o].1);
    }
    y = function.apply(simd, x, y);
    for o in 0..O {
        simd.partial_store_f32s(outputs[o].1, y[o]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Exp;

    impl Lanewise<1, 1> for Exp {
        #[inline(always)]
        fn apply<S: Simd>(self, simd: S, [x]: [S::f32s; 1], _: [S::f32s; 1]) -> [S::f32s; 1] {
            [exp(simd, x)]
        }
    }

    fn exps(x: &[f32]) -> Vec<f32> {
        let mut y = vec![f32::NAN; x.len()];
        map(Exp, [x], [&mut y]);
        y
    }

    #[test]
    fn exp_is_within_its_error_everywhere() {
        let x: Vec<f32> = (0..2_000_003).map(|i| -87.33 + 175.6 * (i as f32 / 2e6)).collect();
        for (x, y) in x.iter().zip(exps(&x)) {
            let exact = f64::from(*x).exp();
            let error = (f64::from(y) - exact).abs() / exact;
            assert!(error < 2e-7, "exp({x}) = {y}, off by {error:e}");
        }
    }

    #[test]
    fn exp_at_its_ends() {
        let y = exps(&[f32::NEG_INFINITY, -1e30, -87.34, 0.0, -0.0, f32::NAN, 1e30]);
        assert_eq!(y[..5], [0.0, 0.0, 0.0, 1.0, 1.0]);
        assert!(y[5].is_nan());
        assert_eq!(y[6], f32::INFINITY);
    }
}
