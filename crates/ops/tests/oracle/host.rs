use burn::tensor::{DType, Device, Tensor};
use thinwire_ops::{HostFn, on_host};

use crate::support::{Values, rng, run, to_vec, upstream};

fn times(factor: f32) -> HostFn {
    HostFn::new(move |values| values.into_iter().map(|value| value * factor).collect())
}

#[test]
fn values_and_gradients_go_each_their_way() {
    let x = Values::random([3, 5], 2.0, &mut rng(1));
    // Powers of two: nothing is rounded.
    for (forward, backward) in [(1.0, 1.0), (4.0, 1.0), (1.0, -0.5), (4.0, -0.5)] {
        let maps = [forward, backward].map(|factor| (factor != 1.0).then(|| times(factor)));
        let formula = |x: &[Tensor<2>]| on_host(x[0].clone(), maps[0].clone(), maps[1].clone());
        let (y, gradients) = run(std::slice::from_ref(&x), &formula, DType::F32);
        assert_eq!(y, x.values.iter().map(|x| x * forward).collect::<Vec<_>>());
        assert_eq!(gradients[0], (0..15).map(|i| upstream(i) * backward).collect::<Vec<_>>());
    }
}

#[test]
fn bf16_stays_bf16_and_strides_are_seen_through() {
    let device = Device::flex();
    let x = Values::random([3, 5], 2.0, &mut rng(2)).tensor(&device).cast(DType::BF16).transpose();
    let y = on_host(x.clone(), Some(times(2.0)), None);
    assert_eq!((y.dtype(), y.dims()), (DType::BF16, [5, 3]));
    assert_eq!(to_vec(y), to_vec(x.mul_scalar(2.0)));
}

#[test]
#[should_panic(expected = "on_host: values for [2, 3]")]
fn other_lengths_are_refused() {
    on_host(Tensor::zeros([2, 3], &Device::flex()), Some(HostFn::new(|_| vec![0.0; 5])), None);
}
