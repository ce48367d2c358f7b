//! The tensors that are added up.

/// `x` becomes the tensor of `rank`: values spread evenly from -1 to 1.
pub(super) fn fill(rank: usize, x: &mut [f32]) {
    for (index, x) in x.iter_mut().enumerate() {
        *x = value(rank, index);
    }
}

/// How far a result is from the sum of all ranks' tensors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distance {
    /// Of one value, at most.
    pub(super) largest: f64,
    /// The norm of the differences by that of the sum.
    pub(super) relative: f64,
}

impl Distance {
    /// Of `y`, which is to be the sum over `ranks` ranks.
    pub(super) fn of(y: &[f32], ranks: usize) -> Self {
        let (mut largest, mut squares, mut all) = (0.0_f64, 0.0, 0.0);
        for (index, &y) in y.iter().enumerate() {
            let exact: f64 = (0..ranks).map(|rank| f64::from(value(rank, index))).sum();
            let difference = f64::from(y) - exact;
            // What is not finite is as far off as can be; `max` would pass over it.
            largest = if difference.is_finite() { largest.max(difference.abs()) } else { f64::INFINITY };
            squares += difference * difference;
            all += exact * exact;
        }
        Self { largest, relative: (squares / all).sqrt() }
    }
}

/// A well-mixed function of both (the finalizer of `SplitMix64`), cut to the 24 bits that an f32 holds.
fn value(rank: usize, index: usize) -> f32 {
    let mut z = ((rank as u64) << 48 ^ index as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_their_range_and_ranks_differ() {
        let [mut x, mut other] = [vec![0.0; 10_000], vec![0.0; 10_000]];
        fill(0, &mut x);
        fill(1, &mut other);
        assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
        let mean = |x: &[f32]| x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
        assert!(mean(&x).abs() < 0.03);
        let product: Vec<f32> = x.iter().zip(&other).map(|(a, b)| a * b).collect();
        assert!(mean(&product).abs() < 0.02, "independent");
    }

    #[test]
    fn one_value_that_is_off_is_found() {
        let mut x = [vec![0.0; 100], vec![0.0; 100]];
        fill(0, &mut x[0]);
        fill(1, &mut x[1]);
        let mut y: Vec<f32> = x[0].iter().zip(&x[1]).map(|(a, b)| a + b).collect();
        assert!(Distance::of(&y, 2).largest < 1e-6);
        y[99] += 0.5;
        let found = Distance::of(&y, 2);
        assert!((found.largest - 0.5).abs() < 1e-6 && found.relative > 0.01);
        y[3] = f32::NAN;
        assert_eq!(Distance::of(&y, 2).largest, f64::INFINITY);
    }
}
