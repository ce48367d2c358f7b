use burn::tensor::{Device, Tensor};
use proptest::prelude::*;
use thinwire_ops::{WeightLayout, linear};

use crate::support::{Values, compare, compare_rounded, rng};

const LAYOUTS: [WeightLayout; 2] = [WeightLayout::InOut, WeightLayout::OutIn];

fn check([rows, from, to]: [usize; 3], layout: WeightLayout, biased: bool, seed: u64) {
    let stored = if layout == WeightLayout::InOut { [from, to] } else { [to, from] };
    let mut rng = rng(seed);
    let inputs = [[rows, from], stored, [1, to]].map(|shape| Values::random(shape, 2.0, &mut rng));
    let count = if biased { 3 } else { 2 };
    let fused = |x: &[Tensor<2>]| {
        let bias = x.get(2).map(|bias| bias.clone().flatten(0, 1));
        linear(x[0].clone(), x[1].clone(), bias, layout, None)
    };
    let composed = |x: &[Tensor<2>]| {
        let weight = if layout == WeightLayout::InOut { x[1].clone() } else { x[1].clone().transpose() };
        let y = x[0].clone().matmul(weight);
        x.get(2).map_or(y.clone(), |bias| y + bias.clone())
    };
    compare(&inputs[..count], &fused, &composed, 1e-5);
    compare_rounded(&inputs[..count], &fused, &composed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn linear_is_the_composed_one(
        rows in 1usize..70, from in 1usize..70, to in 1usize..70, out_in: bool, biased: bool, seed: u64
    ) {
        check([rows, from, to], LAYOUTS[usize::from(out_in)], biased, seed);
    }
}

#[test]
fn products_that_are_shared_among_threads() {
    for layout in LAYOUTS {
        check([129, 257, 193], layout, true, 1);
    }
}

#[test]
fn a_transposed_input_is_taken_as_it_is() {
    let device = Device::flex();
    let mut rng = rng(2);
    let [x, w] = [[7, 5], [7, 3]].map(|shape| Values::random(shape, 1.0, &mut rng).tensor(&device));
    let expected = x.clone().transpose().matmul(w.clone());
    let found = linear(x.transpose(), w.transpose(), None, WeightLayout::OutIn, None);
    assert!((found - expected).abs().max().into_scalar::<f32>() < 1e-6);
}

#[test]
fn a_frozen_weight_has_no_gradient() {
    let device = Device::flex().autodiff();
    let mut rng = rng(3);
    let [x, w] = [[2, 5], [3, 5]].map(|shape| Values::random(shape, 1.0, &mut rng).tensor(&device));
    let x = x.require_grad();
    let tape = linear(x.clone(), w.clone(), None, WeightLayout::OutIn, None).sum().backward();
    assert!(x.grad(&tape).is_some());
    assert!(w.grad(&tape).is_none());
}

#[test]
#[should_panic(expected = "linear: x is [2, 5], the weight [5, 3] in layout OutIn")]
fn a_weight_of_the_other_layout_is_refused() {
    let device = Device::flex();
    linear(Tensor::zeros([2, 5], &device), Tensor::zeros([5, 3], &device), None, WeightLayout::OutIn, None);
}
