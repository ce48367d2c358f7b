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

/// The value of `formula` and the gradients of all inputs, for the upstream gradient `cos(i)`.
pub(crate) fn run(inputs: &[Values], formula: Formula<'_>, dtype: DType) -> (Vec<f32>, Vec<Vec<f32>>) {
    let device = Device::flex().autodiff();
    let leaves: Vec<Tensor<2>> = inputs.iter().map(|x| x.tensor(&device).require_grad()).collect();
    let cast: Vec<Tensor<2>> = leaves.iter().map(|x| x.clone().cast(dtype)).collect();
    let y = formula(&cast);
    let upstream: Vec<f32> = (0..y.shape().num_elements()).map(|i| (i as f32).cos()).collect();
    let upstream = Tensor::<2>::from_data(TensorData::new(upstream, y.dims()), &device).cast(dtype);
    let mut tape = (y.clone() * upstream).sum().backward();
    let gradient = |x: &Tensor<2>| to_vec(x.grad_remove(&mut tape).expect("every input has a gradient"));
    (to_vec(y), leaves.iter().map(gradient).collect())
}

/// Fused in f32 against composed in f64. `tolerance` counts in units of the largest value of what is compared, or of 1 where
/// sums of larger terms cancel: f32 sums of `n` terms of any sign are off by some `sqrt(n) 2^-24` of a term.
pub(crate) fn compare(inputs: &[Values], fused: Formula<'_>, composed: Formula<'_>, tolerance: f32) {
    let (y, gradients) = run(inputs, fused, DType::F32);
    let (exact, exact_gradients) = run(inputs, composed, DType::F64);
    close("the result", &y, &exact, tolerance);
    for (i, (found, exact)) in gradients.iter().zip(&exact_gradients).enumerate() {
        close(&format!("the gradient of input {i}"), found, exact, tolerance);
        assert!(found.iter().any(|&g| g != 0.0), "the gradient of input {i} is zero");
    }
}

pub(crate) fn close(what: &str, found: &[f32], exact: &[f32], tolerance: f32) {
    assert_eq!(found.len(), exact.len(), "{what}: lengths");
    let size = exact.iter().fold(1f32, |max, x| max.max(x.abs()));
    for (i, (found, exact)) in found.iter().zip(exact).enumerate() {
        let error = (found - exact).abs();
        assert!(error <= tolerance * size, "{what}: {found} at {i}, exact {exact}, of {size}");
    }
}
