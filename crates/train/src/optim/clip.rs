//! Global norm clipping, with sums whose order no split changes.

use burn::tensor::Tensor;

/// Independent sums, so that the additions do not wait for each other.
const LANES: usize = 16;

/// `sum g^2` in f64: lane by lane, then the lanes in order.
///
/// # Panics
/// When the gradient is not f32.
pub fn square_norm(gradient: &Tensor<1>) -> f64 {
    let data = gradient.to_data();
    let values = data.as_slice::<f32>().expect("gradients are f32");
    let mut lanes = [0.0f64; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value) * f64::from(value);
        }
    }
    lanes.iter().sum()
}

/// The factor that brings a gradient of this norm down to `limit`; 1 when it is below, or when `limit` is 0.
pub fn clip_factor(norm: f64, limit: f64) -> f64 {
    if limit > 0.0 && norm > limit { limit / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn the_norm_counts_every_value_once() {
        let values: Vec<f32> = (1..=37).map(|i| i as f32 * 0.5).collect();
        let expected = 0.25 * f64::from(37 * 38 * 75 / 6);
        assert_eq!(square_norm(&Tensor::<1>::from_floats(values.as_slice(), &Device::flex())), expected);
    }

    #[test]
    fn clipping_starts_at_the_limit() {
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert_eq!(clip_factor(4.0, 1.0), 0.25);
        assert_eq!(clip_factor(4.0, 0.0), 1.0);
    }
}
