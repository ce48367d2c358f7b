use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use proptest::prelude::*;
use thinwire_ops::{RotaryTable, rotary};

use crate::support::{Values, compare, compare_rounded, rng, to_vec};

fn frequencies(half: usize) -> Vec<f64> {
    (0..half).map(|j| 10_000f64.powf(-(j as f64) / half as f64)).collect()
}

/// By complex numbers: `(a + ib) e^(ip f)`.
fn composed(x: &Tensor<2>, half: usize, tokens: usize, start: usize) -> Tensor<2> {
    let [rows, width] = x.dims();
    let x = x.clone().reshape([rows, width / (2 * half), 2 * half]);
    let table = |f: fn(f64) -> f64| {
        let angle = |row: usize, j: usize| f((start + row % tokens) as f64 * frequencies(half)[j]);
        let values: Vec<f64> = (0..rows * half).map(|i| angle(i / half, i % half)).collect();
        Tensor::<3>::from_data(TensorData::new(values, [rows, 1, half]), (&x.device(), DType::F64))
    };
    let (cos, sin) = (table(f64::cos), table(f64::sin));
    let (a, b) = (x.clone().narrow(2, 0, half), x.clone().narrow(2, half, half));
    let first = a.clone() * cos.clone() - b.clone() * sin.clone();
    Tensor::cat(vec![first, b * cos + a * sin], 2).reshape([rows, width])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn rotary_is_the_composed_one(
        samples in 1usize..4, tokens in 1usize..40, heads in 1usize..5, half in 1usize..40, start in 0usize..50, seed: u64
    ) {
        let inputs = [Values::random([samples * tokens, heads * 2 * half], 2.0, &mut rng(seed))];
        let table = Arc::new(RotaryTable::new(&frequencies(half), start + tokens, 1.0));
        let fused = |x: &[Tensor<2>]| rotary(x[0].clone(), &table, tokens, start);
        compare(&inputs, &fused, &|x| composed(&x[0], half, tokens, start), 1e-6);
        compare_rounded(&inputs, &fused, &|x| composed(&x[0], half, tokens, start));
    }
}

#[test]
fn a_shared_input_keeps_its_values() {
    let device = Device::flex();
    let x = Values::random([4, 8], 1.0, &mut rng(1));
    let tensor = x.tensor(&device);
    let table = Arc::new(RotaryTable::new(&frequencies(4), 4, 1.0));
    let turned = rotary(tensor.clone(), &table, 4, 0);
    assert_eq!(to_vec(tensor), x.values);
    assert_ne!(to_vec(turned), x.values);
}

#[test]
#[should_panic(expected = "rotary: 5 positions, a table of 4")]
fn a_short_table_is_refused() {
    let table = Arc::new(RotaryTable::new(&frequencies(2), 4, 1.0));
    rotary(Tensor::zeros([4, 4], &Device::flex()), &table, 4, 1);
}
