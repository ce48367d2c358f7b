//! The orthonormal Sylvester-Hadamard transform `H_G / sqrt(G)` as a butterfly: `G log2 G` additions.

mod portable;
mod simd;

pub(super) use portable::transform;
pub(super) use simd::{exact_norm, transform as transform_simd, transform_registers};

/// `sqrt(G)`.
///
/// The transform of a tile, whose length is a power of two from 8 to 1024: for strides `G / 2`, `G / 4`, … 1, every
/// pair of values a stride apart, the first at an index whose stride bit is clear, becomes its sum and its difference.
/// Then every value is divided by this. The transform is its own inverse, up to rounding.
fn root(len: usize) -> f32 {
    (len as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entry `(i, j)` of the Sylvester matrix is `(-1)^popcount(i & j)`.
    fn matrix_product(x: &[f32]) -> Vec<f64> {
        let entry = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let norm = 1.0 / (x.len() as f64).sqrt();
        (0..x.len())
            .map(|i| norm * x.iter().enumerate().map(|(j, &x)| entry(i, j) * f64::from(x)).sum::<f64>())
            .collect()
    }

    fn values(len: usize) -> Vec<f32> {
        (0..len as u32).map(|i| f32::from(i.wrapping_mul(2_654_435_761) as i16) * 0.01).collect()
    }

    /// Each of the `log2 G` additions and the final product round once, on values below `G * max |x|`.
    fn tolerance(x: &[f32]) -> f64 {
        let max = f64::from(x.iter().fold(0.0_f32, |max, x| max.max(x.abs())));
        let len = x.len() as f64;
        (len.log2() + 2.0) * f64::from(f32::EPSILON) / 2.0 * len.sqrt() * max
    }

    #[test]
    fn equals_the_matrix_product() {
        for log2 in 3..=10 {
            let x = values(1 << log2);
            let mut transformed = x.clone();
            transform(&mut transformed);
            for (got, want) in transformed.iter().zip(matrix_product(&x)) {
                assert!((f64::from(*got) - want).abs() <= tolerance(&x), "G = 2^{log2}: {got} for {want}");
            }
        }
    }

    #[test]
    fn twice_is_the_identity() {
        for log2 in 3..=10 {
            let x = values(1 << log2);
            let mut twice = x.clone();
            transform(&mut twice);
            transform(&mut twice);
            for (got, want) in twice.iter().zip(&x) {
                assert!(
                    f64::from((got - want).abs()) <= 2.0 * tolerance(&x),
                    "G = 2^{log2}: {got} for {want}"
                );
            }
        }
    }
}
