use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A matrix of test values.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) values: Vec<f32>,
    pub(crate) shape: [usize; 2],
}

impl Values {
    /// Uniform in `-size..size`.
    pub(crate) fn random(shape: [usize; 2], size: f32, rng: &mut impl Rng) -> Self {
        let values = (0..shape[0] * shape[1]).map(|_| rng.random_range(-size..size)).collect();
        Self { values, shape }
    }

    pub(crate) fn tensor(&self, device: &Device) -> Tensor<2> {
        Tensor::from_data(TensorData::new(self.values.clone(), self.shape), device)
    }
}

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub(crate) fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.cast(DType::F32).into_data().try_to_vec::<f32>().unwrap()
}

/// A formula of matrices; vectors are matrices of one row.
pub(crate) type Formula<'a> = &'a dyn Fn(&[Tensor<2>]) -> Tensor<2>;

/// The value of `formula` and the gradients of all inputs, for the gradient [`upstream`].
pub(crate) fn run(inputs: &[Values], formula: Formula<'_>, dtype: DType) -> (Vec<f32>, Vec<Vec<f32>>) {
    let device = Device::flex().autodiff();
    let leaves: Vec<Tensor<2>> = inputs.iter().map(|x| x.tensor(&device).require_grad()).collect();
    let cast: Vec<Tensor<2>> = leaves.iter().map(|x| x.clone().cast(dtype)).collect();
    let y = formula(&cast);
    let count = y.shape().num_elements();
    let gradient: Vec<f32> = (0..count).map(upstream).collect();
    let upstream = Tensor::<2>::from_data(TensorData::new(gradient, y.dims()), &device).cast(y.dtype());
    let mut tape = (y.clone() * upstream).sum().backward();
    let gradient = |x: &Tensor<2>| to_vec(x.grad_remove(&mut tape).expect("every input has a gradient"));
    (to_vec(y), leaves.iter().map(gradient).collect())
}

/// Fused in f32 against composed in f64. `tolerance` counts in units of the largest value of what is compared, or of 1 where
/// sums of larger terms cancel: f32 sums of `n` terms of any sign are off by some `sqrt(n) 2^-24` of a term.
pub(crate) fn compare(inputs: &[Values], fused: Formula<'_>, composed: Formula<'_>, tolerance: f32) {
    compare_in(DType::F32, inputs, fused, composed, tolerance);
}

/// Fused in bf16, its inputs rounded first, against composed in f64.
pub(crate) fn compare_rounded(inputs: &[Values], fused: Formula<'_>, composed: Formula<'_>) {
    let narrow = |x: &Values| Values { values: x.values.iter().map(|&x| round_to_bf16(x)).collect(), ..*x };
    let narrow: Vec<Values> = inputs.iter().map(narrow).collect();
    compare_in(DType::BF16, &narrow, fused, composed, BF16_TOLERANCE);
}

/// Twice the largest error of rounding to bf16, for where a rounded result is read again.
const BF16_TOLERANCE: f32 = 1.0 / 128.0;

fn compare_in(dtype: DType, inputs: &[Values], fused: Formula<'_>, composed: Formula<'_>, tolerance: f32) {
    let (y, gradients) = run(inputs, fused, dtype);
    let (exact, exact_gradients) = run(inputs, composed, DType::F64);
    close(&format!("the result in {dtype:?}"), &y, &exact, tolerance);
    for (i, (found, exact)) in gradients.iter().zip(&exact_gradients).enumerate() {
        close(&format!("the gradient of input {i} in {dtype:?}"), found, exact, tolerance);
        assert!(found.iter().any(|&g| g != 0.0), "the gradient of input {i} is zero");
    }
}

/// The gradient of the result's value `i`, the same in bf16.
pub(crate) fn upstream(i: usize) -> f32 {
    round_to_bf16((i as f32).cos())
}

fn round_to_bf16(x: f32) -> f32 {
    half::bf16::from_f32(x).to_f32()
}

pub(crate) fn close(what: &str, found: &[f32], exact: &[f32], tolerance: f32) {
    assert_eq!(found.len(), exact.len(), "{what}: lengths");
    let size = exact.iter().fold(1f32, |max, x| max.max(x.abs()));
    for (i, (found, exact)) in found.iter().zip(exact).enumerate() {
        let error = (found - exact).abs();
        assert!(error <= tolerance * size, "{what}: {found} at {i}, exact {exact}, of {size}");
    }
}
