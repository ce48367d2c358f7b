//! Reductions and scalings of one row. Sums run over the vector's lanes, which are added at the end, and the row's rest
//! is added last.

use pulp::Simd;

use super::lanes::exp;

/// At least the lanes of any vector.
const WIDEST: usize = 16;

/// The largest value; NaN may be passed over.
#[inline(always)]
pub(crate) fn max<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let (body, tail) = S::as_simd_f32s(row);
    let mut lanes = simd.splat_f32s(f32::NEG_INFINITY);
    for &x in body {
        lanes = simd.max_f32s(lanes, x);
    }
    let mut max = simd.reduce_max_f32s(lanes);
    for &x in tail {
        max = max.max(x);
    }
    max
}

/// `sum x_i`.
#[inline(always)]
pub(crate) fn sum<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let (body, tail) = S::as_simd_f32s(row);
    let mut lanes = simd.splat_f32s(0.0);
    for &x in body {
        lanes = simd.add_f32s(lanes, x);
    }
    simd.reduce_sum_f32s(simd.add_f32s(lanes, simd.partial_load_f32s(tail)))
}

/// `sum x_i y_i`.
#[inline(always)]
pub(crate) fn dot<S: Simd>(simd: S, x: &[f32], y: &[f32]) -> f32 {
    let ((x, x_tail), (y, y_tail)) = (S::as_simd_f32s(x), S::as_simd_f32s(&y[..x.len()]));
    let tail = simd.mul_f32s(simd.partial_load_f32s(x_tail), simd.partial_load_f32s(y_tail));
    let mut lanes = simd.splat_f32s(0.0);
    for (&x, &y) in x.iter().zip(y) {
        lanes = simd.mul_add_e_f32s(x, y, lanes);
    }
    simd.reduce_sum_f32s(simd.add_f32s(lanes, tail))
}

/// `sum x_i y_i (z_i - shift)`.
#[inline(always)]
pub(crate) fn dot_shifted<S: Simd>(simd: S, [x, y, z]: [&[f32]; 3], shift: f32) -> f32 {
    let n = x.len();
    let (x, y, z) = (S::as_simd_f32s(x), S::as_simd_f32s(&y[..n]), S::as_simd_f32s(&z[..n]));
    let shifts = simd.splat_f32s(shift);
    let mut lanes = simd.splat_f32s(0.0);
    for ((&x, &y), &z) in x.0.iter().zip(y.0).zip(z.0) {
        lanes = simd.mul_add_e_f32s(simd.mul_f32s(x, y), simd.sub_f32s(z, shifts), lanes);
    }
    let mut sum = simd.reduce_sum_f32s(lanes);
    for ((x, y), z) in x.1.iter().zip(y.1).zip(z.1) {
        sum += x * y * (z - shift);
    }
    sum
}

/// `sum (x_i - shift)^2`.
#[inline(always)]
pub(crate) fn square_distance<S: Simd>(simd: S, row: &[f32], shift: f32) -> f32 {
    let (body, tail) = S::as_simd_f32s(row);
    let shifts = simd.splat_f32s(shift);
    let mut lanes = simd.splat_f32s(0.0);
    for &x in body {
        let x = simd.sub_f32s(x, shifts);
        lanes = simd.mul_add_e_f32s(x, x, lanes);
    }
    let mut sum = simd.reduce_sum_f32s(lanes);
    for &x in tail {
        sum += (x - shift) * (x - shift);
    }
    sum
}

/// `sum e^(x_i - shift)`.
#[inline(always)]
pub(crate) fn sum_exp<S: Simd>(simd: S, row: &[f32], shift: f32) -> f32 {
    let (body, tail) = S::as_simd_f32s(row);
    let shifts = simd.splat_f32s(shift);
    let mut lanes = simd.splat_f32s(0.0);
    for &x in body {
        lanes = simd.add_f32s(lanes, exp(simd, simd.sub_f32s(x, shifts)));
    }
    // Lanes behind the end count nothing: their exponential is 0.
    let mut rest = [f32::NEG_INFINITY; WIDEST];
    rest[..tail.len()].copy_from_slice(tail);
    let x = simd.sub_f32s(simd.partial_load_f32s(&rest[..S::F32_LANES]), shifts);
    simd.reduce_sum_f32s(simd.add_f32s(lanes, exp(simd, x)))
}

/// Each `x_i` becomes `factor e^(scale x_i - shift)`; returns their sum.
#[inline(always)]
pub(crate) fn exp_in_place<S: Simd>(simd: S, row: &mut [f32], [scale, shift, factor]: [f32; 3]) -> f32 {
    let (body, tail) = S::as_mut_simd_f32s(row);
    let (scales, shifts) = (simd.splat_f32s(scale), simd.splat_f32s(-shift));
    let factors = simd.splat_f32s(factor);
    let mut lanes = simd.splat_f32s(0.0);
    for x in body {
        *x = simd.mul_f32s(factors, exp(simd, simd.mul_add_e_f32s(*x, scales, shifts)));
        lanes = simd.add_f32s(lanes, *x);
    }
    let y = exp(simd, simd.mul_add_e_f32s(simd.partial_load_f32s(tail), scales, shifts));
    simd.partial_store_f32s(tail, simd.mul_f32s(factors, y));
    simd.reduce_sum_f32s(simd.add_f32s(lanes, simd.partial_load_f32s(tail)))
}

/// Multiplies the row.
#[inline(always)]
pub(crate) fn scale<S: Simd>(simd: S, row: &mut [f32], factor: f32) {
    let (body, tail) = S::as_mut_simd_f32s(row);
    let factors = simd.splat_f32s(factor);
    for x in body {
        *x = simd.mul_f32s(*x, factors);
    }
    for x in tail {
        *x *= factor;
    }
}

/// Adds `x` to the row.
#[inline(always)]
pub(crate) fn add<S: Simd>(simd: S, row: &mut [f32], x: &[f32]) {
    let len = row.len();
    let ((row, row_tail), (x, x_tail)) = (S::as_mut_simd_f32s(row), S::as_simd_f32s(&x[..len]));
    for (sum, &x) in row.iter_mut().zip(x) {
        *sum = simd.add_f32s(*sum, x);
    }
    for (sum, x) in row_tail.iter_mut().zip(x_tail) {
        *sum += x;
    }
}

/// Each `x_i` becomes `weight_i (x_i - shift)`.
#[inline(always)]
pub(crate) fn weigh<S: Simd>(simd: S, row: &mut [f32], weights: &[f32], shift: f32) {
    let len = row.len();
    let ((row, row_tail), (weights, weights_tail)) =
        (S::as_mut_simd_f32s(row), S::as_simd_f32s(&weights[..len]));
    let shifts = simd.splat_f32s(shift);
    for (x, &weight) in row.iter_mut().zip(weights) {
        *x = simd.mul_f32s(weight, simd.sub_f32s(*x, shifts));
    }
    for (x, weight) in row_tail.iter_mut().zip(weights_tail) {
        *x = weight * (*x - shift);
    }
}
