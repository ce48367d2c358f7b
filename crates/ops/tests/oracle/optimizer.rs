use burn::optim::{AdamWConfig, Optimizer};
use burn::tensor::{Device, Tensor};
use thinwire_ops::{AdamWStep, Moments, adamw, square_norm};

use crate::support::{Values, rng, to_vec};

#[test]
fn adamw_has_the_bits_of_burns_optimizer() {
    let device = Device::flex();
    let mut rng = rng(1);
    let mut flat = |size| Values::random([1, 40_001], size, &mut rng).tensor(&device).flatten::<1>(0, 1);
    let mut value = flat(1.0);
    let zeros = value.zeros_like();
    let mut moments = Moments { first: zeros.clone(), second: zeros };
    let (mut expected, mut state) = (value.clone(), None);
    let rule = AdamWConfig::new()
        .with_beta_1(0.9)
        .with_beta_2(0.95)
        .with_epsilon(1e-8)
        .with_weight_decay(0.1)
        .build();
    for updates in 1..=5 {
        let (rate, clip) = (1e-3 / updates as f64, 0.3f32);
        let gradient = flat(0.02);
        (expected, state) = rule.step(rate, expected, gradient.clone() * clip, state);
        let step =
            AdamWStep { rate, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weight_decay: 0.1, clip, updates };
        adamw(&mut value, gradient, &mut moments, &step);
        let momentum = &state.as_ref().unwrap().momentum;
        for (found, expected) in
            [(&value, &expected), (&moments.first, &momentum.moment_1), (&moments.second, &momentum.moment_2)]
        {
            assert_eq!(to_vec(found.clone()), to_vec(expected.clone()), "update {updates}");
        }
    }
}

#[test]
fn a_shared_parameter_keeps_its_values() {
    let value = Tensor::<1>::ones([33], &Device::flex());
    let mut moments = Moments { first: value.zeros_like(), second: value.zeros_like() };
    let step = AdamWStep {
        rate: 0.1,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-8,
        weight_decay: 0.0,
        clip: 1.0,
        updates: 1,
    };
    let mut updated = value.clone();
    adamw(&mut updated, value.clone(), &mut moments, &step);
    assert_eq!(to_vec(value), [1.0; 33]);
    assert!(to_vec(updated).iter().all(|&x| (x - 0.9).abs() < 1e-6));
}

#[test]
fn the_square_norm_counts_every_value_once() {
    let values: Vec<f32> = (1..=200_003).map(|i| (i % 1000) as f32 * 0.5).collect();
    // Multiples of 1/4 below 2^53 are exact.
    let expected: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    assert_eq!(square_norm(&Tensor::<1>::from_floats(values.as_slice(), &Device::flex())), expected);
}
