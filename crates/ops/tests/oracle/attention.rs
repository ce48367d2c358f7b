use burn::tensor::{DType, Device, Tensor, TensorData, activation::softmax};
use proptest::prelude::*;
use thinwire_ops::{AttentionShape, attention};

use crate::support::{Values, compare, compare_rounded, rng, run, to_vec};

fn inputs(shape: AttentionShape, size: f32, seed: u64) -> [Values; 3] {
    let mut rng = rng(seed);
    let kv = [shape.samples * shape.keys, shape.kv_heads * shape.head_dim];
    let q = [shape.samples * shape.queries, shape.query_heads * shape.head_dim];
    [q, kv, kv].map(|shape| Values::random(shape, size, &mut rng))
}

/// With the whole matrix of scores.
fn composed(x: &[Tensor<2>], shape: AttentionShape) -> Tensor<2> {
    let AttentionShape { samples, queries, keys, query_heads, kv_heads, head_dim } = shape;
    let kv = |x: &Tensor<2>| {
        let x = x.clone().reshape([samples, keys, kv_heads, 1, head_dim]);
        let x = x.repeat_dim(3, query_heads / kv_heads);
        x.reshape([samples, keys, query_heads, head_dim]).swap_dims(1, 2)
    };
    let q = x[0].clone().reshape([samples, queries, query_heads, head_dim]).swap_dims(1, 2);
    let scores = q.matmul(kv(&x[1]).transpose()) * (head_dim as f64).powf(-0.5);
    let future = |i: usize| if i % keys > i / keys + keys - queries { f64::NEG_INFINITY } else { 0.0 };
    let mask: Vec<f64> = (0..queries * keys).map(future).collect();
    let mask = TensorData::new(mask, [1, 1, queries, keys]);
    let scores = scores + Tensor::<4>::from_data(mask, (&x[0].device(), DType::F64));
    softmax(scores, 3).matmul(kv(&x[2])).swap_dims(1, 2).reshape([samples * queries, query_heads * head_dim])
}

fn fused(x: &[Tensor<2>], shape: AttentionShape) -> Tensor<2> {
    attention([0, 1, 2].map(|i| x[i].clone()), shape)
}

fn check(shape: AttentionShape, size: f32, seed: u64, tolerance: f32) {
    compare(&inputs(shape, size, seed), &|x| fused(x, shape), &|x| composed(x, shape), tolerance);
}

fn shape(
    [samples, queries, keys]: [usize; 3],
    [query_heads, kv_heads, head_dim]: [usize; 3],
) -> AttentionShape {
    AttentionShape { samples, queries, keys, query_heads, kv_heads, head_dim }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn attention_is_the_composed_one(
        samples in 1usize..3, queries in 2usize..80, cached in 0usize..40,
        kv_heads in 1usize..4, shared in 1usize..4, head_dim in 1usize..40, seed: u64
    ) {
        let heads = [kv_heads * shared, kv_heads, head_dim];
        check(shape([samples, queries, queries + cached], heads), 2.0, seed, 1e-5);
    }
}

#[test]
fn several_tiles_of_keys() {
    check(shape([1, 523, 523], [3, 1, 16]), 2.0, 1, 1e-5);
    check(shape([2, 33, 600], [4, 2, 64]), 2.0, 2, 1e-5);
}

#[test]
fn one_token_attends_to_itself() {
    let shape = shape([3, 1, 1], [4, 2, 8]);
    let inputs = inputs(shape, 1.0, 3);
    let (y, gradients) = run(&inputs, &|x| fused(x, shape), DType::F32);
    for (row, v) in y.chunks(32).zip(inputs[2].values.chunks(16)) {
        assert_eq!(row, [&v[..8], &v[..8], &v[8..], &v[8..]].concat());
    }
    assert!(gradients[2].iter().all(|&g| g != 0.0));
}

#[test]
fn one_query_after_a_cache_is_the_last_row_of_the_whole() {
    let whole = shape([2, 300, 300], [4, 2, 16]);
    let [q, k, v] = inputs(whole, 2.0, 4).map(|x| x.tensor(&Device::flex()));
    let all = attention([q.clone(), k.clone(), v.clone()], whole);
    let last = |x: Tensor<2>| Tensor::cat(vec![x.clone().narrow(0, 299, 1), x.narrow(0, 599, 1)], 0);
    let one = attention([last(q), k, v], AttentionShape { queries: 1, ..whole });
    let difference: f32 = (last(all) - one).abs().max().into_scalar();
    assert!(difference < 1e-6, "{difference}");
}

#[test]
fn large_scores_do_not_overflow() {
    // Saturated weights pass on what is left of terms a thousand times larger.
    check(shape([1, 70, 70], [2, 1, 16]), 60.0, 5, 2e-3);
}

#[test]
fn the_future_has_no_influence() {
    let shape = shape([1, 40, 40], [2, 2, 8]);
    let mut inputs = inputs(shape, 1.0, 6);
    let before = run(&inputs, &|x| fused(x, shape), DType::F32).0;
    for input in &mut inputs[1..] {
        input.values[30 * 16..].fill(1e9);
    }
    let after = run(&inputs, &|x| fused(x, shape), DType::F32).0;
    assert_eq!(before[..30 * 16], after[..30 * 16]);
    assert_ne!(before[30 * 16..], after[30 * 16..]);
}

#[test]
fn parts_of_a_joint_projection_need_no_copy() {
    let shape = shape([2, 9, 9], [2, 2, 4]);
    let joint = Values::random([18, 24], 2.0, &mut rng(7));
    let split = |x: &[Tensor<2>]| [0, 1, 2].map(|i| x[0].clone().narrow(1, 8 * i, 8));
    let (fused, composed) =
        (|x: &[Tensor<2>]| fused(&split(x), shape), |x: &[Tensor<2>]| composed(&split(x), shape));
    compare(std::slice::from_ref(&joint), &fused, &composed, 1e-5);
    compare_rounded(&[joint], &fused, &composed);
}

#[test]
fn nan_reaches_the_result() {
    let shape = shape([1, 20, 20], [1, 1, 4]);
    let mut tensors = inputs(shape, 1.0, 8);
    tensors[1].values[10 * 4] = f32::NAN;
    let y = to_vec(fused(&tensors.map(|x| x.tensor(&Device::flex())), shape));
    assert!(y[..40].iter().all(|y| y.is_finite()));
    assert!(y[40..].iter().all(|y| y.is_nan()));
}

#[test]
#[should_panic(expected = "attention: queries are the last of the keys")]
fn more_queries_than_keys_are_refused() {
    let shape = shape([1, 3, 2], [1, 1, 4]);
    fused(&inputs(shape, 1.0, 9).map(|x| x.tensor(&Device::flex())), shape);
}

#[test]
#[should_panic(expected = "attention: the shapes of q, k and v")]
fn other_shapes_are_refused() {
    let tensors = inputs(shape([1, 3, 3], [2, 1, 4]), 1.0, 9).map(|x| x.tensor(&Device::flex()));
    fused(&tensors, shape([1, 3, 3], [1, 1, 4]));
}
