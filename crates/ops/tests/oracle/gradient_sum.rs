use burn::tensor::{Device, Int, Tensor, TensorData};
use proptest::prelude::*;
use thinwire_ops::{GradientSum, WeightLayout, embedding, linear};

use crate::support::{Values, close, rng, to_vec};

/// The weight's gradient of a linear layer, as Burn has it or, with a sum, as it says.
fn gradient(x: &Values, w: &Values, layout: WeightLayout, sum: Option<&GradientSum>) -> Option<Vec<f32>> {
    let device = Device::flex().autodiff();
    let (x, w) = (x.tensor(&device).require_grad(), w.tensor(&device).require_grad());
    let mut tape = linear(x.clone(), w.clone(), None, layout, sum).powi_scalar(2).sum().backward();
    assert!(x.grad(&tape).is_some());
    w.grad_remove(&mut tape).map(to_vec)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn a_sum_is_that_of_the_gradients(
        rows in 1usize..40, from in 1usize..40, to in 1usize..40, out_in: bool, seed: u64
    ) {
        let (layout, stored) =
            if out_in { (WeightLayout::OutIn, [to, from]) } else { (WeightLayout::InOut, [from, to]) };
        let mut rng = rng(seed);
        let w = Values::random(stored, 1.0, &mut rng);
        let sum = GradientSum::default();
        // The second round starts from nothing, in storage that is full of the first.
        for _ in 0..2 {
            let mut expected = vec![0.0; from * to];
            for _ in 0..3 {
                let x = Values::random([rows, from], 1.0, &mut rng);
                let alone = gradient(&x, &w, layout, None).unwrap();
                expected.iter_mut().zip(alone).for_each(|(sum, g)| *sum += g);
                prop_assert!(gradient(&x, &w, layout, Some(&sum)).is_none());
            }
            // Products of up to 40 terms, each of up to 40 squares below 1, added in another order.
            close("the sum", &to_vec(sum.take().unwrap()), &expected, 1e-5);
            prop_assert!(sum.take().is_none());
        }
    }

    #[test]
    fn embedding_is_a_choice_of_rows(vocab in 1usize..20, width in 1usize..40, rows in 1usize..40, seed: u64) {
        let mut rng = rng(seed);
        let weight = Values::random([vocab, width], 1.0, &mut rng);
        let ids: Vec<i64> = (0..rows).map(|i| i64::try_from((i * i + 3 * i) % vocab).unwrap()).collect();
        let run = |fused: bool, sum: Option<&GradientSum>| {
            let device = Device::flex().autodiff();
            let leaf = weight.tensor(&device).require_grad();
            let ids = Tensor::<1, Int>::from_data(TensorData::new(ids.clone(), [rows]), &device);
            let y = if fused { embedding(leaf.clone(), ids, sum) } else { leaf.clone().select(0, ids) };
            let mut tape = y.clone().powi_scalar(3).sum().backward();
            (to_vec(y), leaf.grad_remove(&mut tape).map(to_vec))
        };
        let (y, gradient) = run(false, None);
        prop_assert_eq!(run(true, None), (y.clone(), gradient.clone()));
        let sum = GradientSum::default();
        for _ in 0..2 {
            prop_assert_eq!(run(true, Some(&sum)), (y.clone(), None));
            prop_assert_eq!(Some(to_vec(sum.take().unwrap())), gradient.clone());
        }
    }
}

fn vector(values: [f32; 3]) -> Tensor<1> {
    Tensor::from_data(values, &Device::flex())
}

fn address(tensor: &Tensor<1>) -> *const f32 {
    let tensor = tensor.clone().try_into_primitive::<burn::backend::Flex>().unwrap();
    tensor.as_slice::<f32>().unwrap().as_ptr()
}

#[test]
fn storage_serves_again_once_nobody_holds_the_result() {
    let device = Device::flex().autodiff();
    let sum = GradientSum::default();
    let add = |value: f32| {
        let x = Tensor::<2>::full([1, 1], value, &device);
        let w = Tensor::<2>::ones([3, 1], &device).require_grad();
        linear(x, w, None, WeightLayout::OutIn, Some(&sum)).sum().backward();
    };
    add(1.0);
    let first = sum.take().unwrap();
    let place = address(&first);
    add(2.0);
    assert_eq!(to_vec(first), [1.0; 3], "a result that is held stays");
    let second = sum.take().unwrap();
    assert_eq!(to_vec(second.clone()), [2.0; 3]);
    assert_ne!(address(&second), place);
    let place = address(&second);
    drop(second);
    add(3.0);
    let third = sum.take().unwrap();
    assert_eq!((to_vec(third.clone()), address(&third)), (vec![3.0; 3], place));
}

#[test]
fn registered_gradients_are_added_too() {
    let sum = GradientSum::default();
    assert!(sum.take().is_none());
    let own = vector([1.0, 2.0, 3.0]);
    sum.add(own.clone());
    sum.clone().add(vector([0.5, 0.25, -3.0]));
    assert_eq!(to_vec(sum.take().unwrap()), [1.5, 2.25, 0.0]);
    assert_eq!(to_vec(own), [1.0, 2.0, 3.0], "what was added is another's");
    sum.add(vector([7.0; 3]));
    assert_eq!(to_vec(sum.take().unwrap()), [7.0; 3]);
}

#[test]
#[should_panic(expected = "a sum of gradients of different lengths")]
fn another_length_is_refused() {
    let sum = GradientSum::default();
    sum.add(vector([0.0; 3]));
    sum.add(Tensor::from_data([0.0; 4], &Device::flex()));
}

#[test]
#[should_panic(expected = "embedding: index 5 of 5")]
fn an_id_outside_the_vocabulary_is_refused() {
    let device = Device::flex();
    embedding(Tensor::zeros([5, 2], &device), Tensor::from_data([5], &device), None);
}
