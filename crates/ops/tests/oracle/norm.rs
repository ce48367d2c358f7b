use burn::tensor::{DType, Tensor};
use proptest::prelude::*;
use thinwire_ops::{layer_norm, rms_norm};

use crate::support::{Values, compare, compare_rounded, rng, run};

const EPS: f64 = 1e-5;

fn composed(x: Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
    let deviation = (x.clone().square().mean_dim(1) + EPS).sqrt();
    x / deviation * weight.clone()
}

fn composed_rms(x: &[Tensor<2>]) -> Tensor<2> {
    composed(x[0].clone(), &x[1])
}

fn composed_layer(x: &[Tensor<2>]) -> Tensor<2> {
    composed(x[0].clone() - x[0].clone().mean_dim(1), &x[1]) + x[2].clone()
}

fn fused_rms(x: &[Tensor<2>]) -> Tensor<2> {
    rms_norm(x[0].clone(), x[1].clone().flatten(0, 1), EPS as f32)
}

fn fused_layer(x: &[Tensor<2>]) -> Tensor<2> {
    let [weight, bias] = [1, 2].map(|i| x[i].clone().flatten(0, 1));
    layer_norm(x[0].clone(), weight, bias, EPS as f32)
}

fn inputs([rows, width]: [usize; 2], size: f32, seed: u64) -> [Values; 3] {
    let mut rng = rng(seed);
    [[rows, width], [1, width], [1, width]].map(|shape| Values::random(shape, size, &mut rng))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn rms_norm_is_the_composed_one(rows in 1usize..80, width in 3usize..130, size in 0.1f32..20.0, seed: u64) {
        compare(&inputs([rows, width], size, seed)[..2], &fused_rms, &composed_rms, 1e-5);
        compare_rounded(&inputs([rows, width], size, seed)[..2], &fused_rms, &composed_rms);
    }

    #[test]
    fn layer_norm_is_the_composed_one(rows in 1usize..80, width in 3usize..130, size in 0.1f32..20.0, seed: u64) {
        compare(&inputs([rows, width], size, seed), &fused_layer, &composed_layer, 5e-5);
        compare_rounded(&inputs([rows, width], size, seed), &fused_layer, &composed_layer);
    }
}

#[test]
fn a_large_mean_does_not_drown_the_variance() {
    let mut inputs = inputs([5, 576], 1.0, 3);
    // Steps of 1/64 are exact next to 1024.
    inputs[0].values.iter_mut().for_each(|x| *x = (*x * 64.0).round() / 64.0 + 1024.0);
    compare(&inputs, &fused_layer, &composed_layer, 1e-4);
}

#[test]
fn the_norm_of_each_head_is_that_of_its_row() {
    let [x, weight, _] = inputs([6 * 9, 64], 2.0, 4);
    let wide = Values { values: x.values.clone(), shape: [6, 9 * 64] };
    let heads = |x: &[Tensor<2>]| {
        let rows = fused_rms(&[x[0].clone().reshape([6 * 9, 64]), x[1].clone()]);
        rows.reshape([6, 9 * 64])
    };
    let by_head = run(&[wide, weight.clone()], &heads, DType::F32);
    assert_eq!(by_head, run(&[x, weight], &fused_rms, DType::F32));
}

#[test]
fn nan_stays_in_its_row() {
    let mut inputs = inputs([3, 33], 1.0, 5);
    inputs[0].values[40] = f32::NAN;
    let y = run(&inputs[..2], &fused_rms, DType::F32).0;
    assert!(y[33..66].iter().all(|y| y.is_nan()));
    assert!(y[..33].iter().chain(&y[66..]).all(|y| y.is_finite()));
}

#[test]
#[should_panic(expected = "norm: x is [2, 5], a parameter has 4 values")]
fn a_weight_of_another_width_is_refused() {
    let device = burn::tensor::Device::flex();
    rms_norm(Tensor::zeros([2, 5], &device), Tensor::zeros([4], &device), 1e-5);
}
