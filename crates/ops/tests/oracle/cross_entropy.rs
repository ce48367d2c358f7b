use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation::log_softmax};
use proptest::prelude::*;
use thinwire_ops::{HostFn, cross_entropy, cross_entropy_of_columns};

use crate::support::{Values, compare, compare_rounded, rng, run, to_vec};

fn targets(rows: usize, vocab: usize, device: &Device) -> Tensor<1, Int> {
    let ids: Vec<i64> = (0..rows).map(|i| i64::try_from(i * i * 31 % vocab).unwrap()).collect();
    Tensor::from_data(TensorData::new(ids, [rows]), device)
}

fn composed(x: &[Tensor<2>]) -> Tensor<2> {
    let [rows, vocab] = x[0].dims();
    log_softmax(x[0].clone(), 1).gather(1, targets(rows, vocab, &x[0].device()).reshape([rows, 1])).neg()
}

fn fused(x: &[Tensor<2>]) -> Tensor<2> {
    let [rows, vocab] = x[0].dims();
    cross_entropy(x[0].clone(), targets(rows, vocab, &x[0].device())).reshape([rows, 1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn cross_entropy_is_the_composed_one(rows in 1usize..20, vocab in 2usize..300, size in 0.1f32..50.0, seed: u64) {
        compare(&[Values::random([rows, vocab], size, &mut rng(seed))], &fused, &composed, 3e-6);
        compare_rounded(&[Values::random([rows, vocab], size, &mut rng(seed))], &fused, &composed);
    }
}

/// The same in pieces of `cut` and all other columns, each with a gather that knows what the others have.
fn in_columns(x: &[Tensor<2>], cut: usize) -> Tensor<2> {
    let [rows, vocab] = x[0].dims();
    let columns = [(0, cut), (cut, vocab - cut)];
    let pieces = columns.map(|(first, count)| x[0].clone().narrow(1, first, count));
    let losses = |piece: usize, gather: HostFn| {
        let targets = targets(rows, vocab, &x[0].device());
        cross_entropy_of_columns(pieces[piece].clone(), columns[piece].0, targets, vocab, gather)
    };
    let shares: Arc<Mutex<Vec<f32>>> = Arc::default();
    for piece in 0..columns.len() {
        let all = shares.clone();
        losses(
            piece,
            HostFn::new(move |own| {
                all.lock().unwrap().extend(&own);
                own
            }),
        );
    }
    let all = shares.lock().unwrap().clone();
    let gather = HostFn::new(move |_| all.clone());
    let [first, second] = [0, 1].map(|piece| losses(piece, gather.clone()));
    assert_eq!(to_vec(first.clone().inner()), to_vec(second.clone().inner()));
    // Together they have the loss twice, and every gradient once.
    let (value, both) = (first.clone().detach(), first + second);
    (both - value).reshape([rows, 1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn columns_are_joined(rows in 1usize..20, vocab in 2usize..300, cut in 0.0f32..1.0, size in 0.1f32..50.0, seed: u64) {
        let cut = 1 + (cut * (vocab - 2) as f32) as usize;
        let x = [Values::random([rows, vocab], size, &mut rng(seed))];
        compare(&x, &|x| in_columns(x, cut), &composed, 3e-6);
    }
}

#[test]
fn a_large_vocabulary() {
    compare(&[Values::random([3, 49_152], 8.0, &mut rng(1))], &fused, &composed, 3e-6);
    compare_rounded(&[Values::random([3, 49_152], 8.0, &mut rng(1))], &fused, &composed);
}

#[test]
fn huge_logits_do_not_overflow() {
    compare(&[Values::random([4, 100], 1e5, &mut rng(2))], &fused, &composed, 1e-6);
}

#[test]
fn a_masked_row_has_no_gradient_even_if_its_logits_are_not_finite() {
    let mut x = Values::random([3, 10], 2.0, &mut rng(3));
    x.values[10] = f32::INFINITY;
    let masked = |x: &[Tensor<2>]| {
        fused(x).mask_fill(Tensor::from_data([[false], [true], [false]], &x[0].device()), 0.0)
    };
    let (y, gradients) = run(&[x], &masked, DType::F32);
    assert_eq!(y[1], 0.0);
    assert!(gradients[0][10..20].iter().all(|&g| g == 0.0));
    assert!(gradients[0][..10].iter().chain(&gradients[0][20..]).all(|&g| g != 0.0));
}

#[test]
fn logits_that_somebody_holds_keep_their_values() {
    let device = Device::flex().autodiff();
    let x = Values::random([2, 10], 2.0, &mut rng(4));
    let logits = x.tensor(&device).require_grad();
    let tape = fused(std::slice::from_ref(&logits)).sum().backward();
    assert_eq!(to_vec(logits.clone().inner()), x.values);
    assert_ne!(to_vec(logits.grad(&tape).unwrap()), x.values);
}

#[test]
#[should_panic(expected = "cross_entropy: index 5 of 5")]
fn a_target_outside_the_vocabulary_is_refused() {
    let device = Device::flex();
    cross_entropy(Tensor::zeros([1, 5], &device), Tensor::from_data([5], &device));
}
