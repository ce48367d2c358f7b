use std::sync::Arc;

use burn::tensor::{DType, Int, Tensor, TensorData};
use rayon::ThreadPoolBuilder;
use thinwire_ops::{
    AttentionShape, RotaryTable, WeightLayout, attention, cross_entropy, gelu_tanh, layer_norm, linear,
    rms_norm, rotary, swiglu,
};

use crate::support::{Values, rng, run};

const TOKENS: usize = 131;
const WIDTH: usize = 192;

/// A little model in which every operator is large enough to be shared.
fn model(x: &[Tensor<2>]) -> Tensor<2> {
    let vector = |i: usize| x[i].clone().narrow(0, 0, 1).flatten::<1>(0, 1);
    let shape = AttentionShape {
        samples: 2,
        queries: TOKENS,
        keys: TOKENS,
        query_heads: 6,
        kv_heads: 6,
        head_dim: WIDTH / 6,
    };
    let table = Arc::new(RotaryTable::new(&[1.0; WIDTH / 12], TOKENS, 1.0));
    let h = rms_norm(x[0].clone(), vector(1), 1e-5);
    let q = rotary(linear(h.clone(), x[1].clone(), None, WeightLayout::OutIn, None), &table, TOKENS, 0);
    let h = attention([q, h.clone(), h.clone()], shape) + swiglu(h.clone(), gelu_tanh(h));
    let h = layer_norm(h, vector(1), vector(2), 1e-5);
    let logits = linear(h, x[2].clone(), Some(vector(2)), WeightLayout::InOut, None);
    let rows = 2 * TOKENS;
    let targets: Vec<i64> = (0..rows).map(|i| i64::try_from(i % WIDTH).unwrap()).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [rows]), &logits.device());
    cross_entropy(logits, targets).reshape([rows, 1])
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let mut rng = rng(1);
    let shapes = [[2 * TOKENS, WIDTH], [WIDTH, WIDTH], [WIDTH, WIDTH]];
    let inputs = shapes.map(|shape| Values::random(shape, 1.0, &mut rng));
    let with = |threads| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&inputs, &model, DType::F32))
    };
    let one = with(1);
    assert!(one.0.iter().all(|y| y.is_finite()));
    for threads in [2, 3, 7] {
        assert_eq!(with(threads), one, "{threads} threads");
    }
}
