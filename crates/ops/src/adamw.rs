use burn::backend::Flex;
use burn::tensor::Tensor;

use crate::kernel::adamw::{self as kernel, Update};
use crate::kernel::lanes::map;
use crate::profile::{Operator, Pass, time};
use crate::tensor::{contiguous, from_values, into_values, primitive, values};

/// The numbers of one AdamW update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the running mean of the gradient.
    pub beta1: f32,
    /// Decay of the running mean of its square.
    pub beta2: f32,
    /// Added to the root of the latter.
    pub epsilon: f32,
    /// Share of the parameter that a rate of 1 would take away.
    pub weight_decay: f32,
    /// What the gradient is multiplied with first: the factor of global norm clipping.
    pub clip: f32,
    /// Updates made, this one included: 1 for the first.
    pub updates: usize,
}

/// The running means of a parameter's gradient and of its square; zeros before the first update.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Of the gradient.
    pub first: Tensor<1>,
    /// Of its square.
    pub second: Tensor<1>,
}

/// One update of AdamW (Loshchilov and Hutter, 2019) in one pass, in place where nobody else holds the tensors. All are
/// flat, of one length, and without autodiff. The results have the bits of Burn's optimizer (but for the sign of zeros).
///
/// # Panics
/// When the lengths differ, a tensor is not `f32` on the CPU, or `updates` is 0.
pub fn adamw(value: &mut Tensor<1>, gradient: Tensor<1>, moments: &mut Moments, step: &AdamWStep) {
    let _timer = time(Operator::AdamW, Pass::Update);
    let gradient = contiguous(primitive(gradient));
    let gradient = values(&gradient);
    let mut tensors = [value, &mut moments.first, &mut moments.second];
    let [mut value, mut first, mut second] =
        tensors.each_mut().map(|tensor| into_values(primitive(tensor.extract())));
    let lengths = [value.len(), first.len(), second.len()];
    assert_eq!(lengths, [gradient.len(); 3], "adamw: the lengths of parameter and moments");
    map(step.update(), [gradient], [&mut value, &mut first, &mut second]);
    for (tensor, values) in tensors.into_iter().zip([value, first, second]) {
        *tensor = Tensor::from_primitive::<Flex>(from_values(values, [gradient.len()]));
    }
}

impl AdamWStep {
    fn update(&self) -> Update {
        let updates = i32::try_from(self.updates).unwrap_or(i32::MAX);
        assert!(updates > 0, "adamw: updates are counted from 1");
        Update {
            clip: self.clip,
            beta: [self.beta1, self.beta2],
            correction: [1.0 - self.beta1.powi(updates), 1.0 - self.beta2.powi(updates)],
            epsilon: self.epsilon,
            rate: self.rate as f32,
            keep: (1.0 - self.rate * f64::from(self.weight_decay)) as f32,
        }
    }
}

/// `sum x^2` in f64, in an order that depends on the length alone.
///
/// # Panics
/// When the tensor is not `f32` on the CPU.
pub fn square_norm(tensor: &Tensor<1>) -> f64 {
    let _timer = time(Operator::SquareNorm, Pass::Update);
    kernel::square_norm(values(&contiguous(primitive(tensor.clone()))))
}
