use burn::tensor::{DType, Tensor, activation};
use proptest::prelude::*;
use thinwire_ops::{gelu_tanh, swiglu};

use crate::support::{Values, compare, compare_rounded, rng, run, upstream};

fn composed_swiglu(x: &[Tensor<2>]) -> Tensor<2> {
    activation::silu(x[0].clone()) * x[1].clone()
}

fn composed_gelu(x: &[Tensor<2>]) -> Tensor<2> {
    let x = x[0].clone();
    let inner = (x.clone() + x.clone().powi_scalar(3) * 0.044_715) * (2.0 / std::f64::consts::PI).sqrt();
    x * 0.5 * (inner.tanh() + 1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn swiglu_is_the_composed_one(rows in 1usize..7, width in 1usize..90, size in 0.1f32..30.0, seed: u64) {
        let mut rng = rng(seed);
        let inputs = [(); 2].map(|()| Values::random([rows, width], size, &mut rng));
        compare(&inputs, &|x| swiglu(x[0].clone(), x[1].clone()), &composed_swiglu, 1e-6);
        compare_rounded(&inputs, &|x| swiglu(x[0].clone(), x[1].clone()), &composed_swiglu);
    }

    #[test]
    fn gelu_is_the_composed_one(rows in 1usize..7, width in 1usize..90, size in 0.1f32..12.0, seed: u64) {
        let inputs = [Values::random([rows, width], size, &mut rng(seed))];
        compare(&inputs, &|x| gelu_tanh(x[0].clone()), &composed_gelu, 2e-6);
        compare_rounded(&inputs, &|x| gelu_tanh(x[0].clone()), &composed_gelu);
    }
}

#[test]
fn many_tasks_cover_every_element() {
    let mut rng = rng(1);
    let inputs = [(); 2].map(|()| Values::random([67, 1001], 4.0, &mut rng));
    compare(&inputs, &|x| swiglu(x[0].clone(), x[1].clone()), &composed_swiglu, 1e-6);
    compare(&inputs[..1], &|x| gelu_tanh(x[0].clone()), &composed_gelu, 2e-6);
}

#[test]
fn large_values_saturate() {
    let x = Values { values: vec![-1e30, -200.0, 200.0, 1e18], shape: [1, 4] };
    let (y, gradients) = run(std::slice::from_ref(&x), &|x| gelu_tanh(x[0].clone()), DType::F32);
    assert_eq!(y, [0.0, 0.0, 200.0, 1e18]);
    assert_eq!(gradients[0], [0.0, 0.0, upstream(2), upstream(3)]);

    let ones = Values { values: vec![1.0; 4], shape: [1, 4] };
    let (y, gradients) = run(&[x, ones], &|x| swiglu(x[0].clone(), x[1].clone()), DType::F32);
    assert_eq!(y, [0.0, 0.0, 200.0, 1e18]);
    assert_eq!(gradients[0], [0.0, 0.0, upstream(2), upstream(3)]);
}

#[test]
fn what_is_not_finite_comes_through() {
    let x = Values { values: vec![f32::NAN, f32::INFINITY, 0.0], shape: [1, 3] };
    for y in [
        run(std::slice::from_ref(&x), &|x| gelu_tanh(x[0].clone()), DType::F32).0,
        run(&[x.clone(), x], &|x| swiglu(x[0].clone(), x[1].clone()), DType::F32).0,
    ] {
        assert!(!y[0].is_finite() && !y[1].is_finite(), "{y:?}");
        assert_eq!(y[2], 0.0);
    }
}

#[test]
#[should_panic(expected = "swiglu: the shapes of gate and up")]
fn other_shapes_are_refused() {
    let device = burn::tensor::Device::flex();
    swiglu(Tensor::zeros([2, 3], &device), Tensor::zeros([3, 2], &device));
}
