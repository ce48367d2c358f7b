//! Leverage score sampling (paper, section 4.2 and appendix A.2): of the rows of a split gradient, those that matter.

use crate::random::Key;

/// Which rows of a split gradient take part in a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Half of them in expectation, drawn with [`probabilities`] and divided by these: unbiased.
    #[default]
    Sample,
    /// All that are not zero.
    KeepNonzero,
    /// The half with the largest scores, as they are: biased.
    TopK,
    /// All.
    Off,
}

/// Probabilities proportional to the scores that add up to `budget`, except that none is above 1: what is cut off is spread over
/// the others, proportionally, as often as it takes. Where no more than `budget` scores are positive, those get 1 and the others 0.
///
/// Scores are not negative. If one is NaN or infinite, all probabilities are 1.
pub fn probabilities(scores: &[f32], budget: usize) -> Vec<f64> {
    if scores.iter().any(|score| !score.is_finite()) {
        return vec![1.0; scores.len()];
    }
    let mut order: Vec<usize> = (0..scores.len()).filter(|&i| scores[i] > 0.0).collect();
    order.sort_unstable_by(|&i, &j| scores[j].total_cmp(&scores[i]));
    let mut probabilities = vec![0.0; scores.len()];
    // The sum of the scores from each place in the order on.
    let mut rest = 0.0;
    let mut sums: Vec<f64> = order
        .iter()
        .rev()
        .map(|&i| {
            rest += f64::from(scores[i]);
            rest
        })
        .collect();
    sums.reverse();
    // With the `certain` largest at 1, the others share what is left of the budget.
    let share = |certain: usize| (budget - certain) as f64 / sums[certain];
    let all = order.len().min(budget);
    let certain =
        (0..all).find(|&certain| share(certain) * f64::from(scores[order[certain]]) <= 1.0).unwrap_or(all);
    for (place, &i) in order.iter().enumerate() {
        probabilities[i] = if place < certain {
            1.0
        } else if certain < all {
            share(certain) * f64::from(scores[i])
        } else {
            0.0
        };
    }
    probabilities
}

/// What a kept row is multiplied by, `eighths / 8 * 2^exponent`.
///
/// The reciprocal of a probability has to be a factor of codes that are multiplied as integers: `eighths` times a 4-bit code is an
/// 8-bit code, and the power of two is a scale that a segment of rows has in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight {
    /// 8 to 15.
    pub(crate) eighths: u8,
    pub(crate) exponent: u8,
}

impl Weight {
    pub(crate) const ONE: Self = Self { eighths: 8, exponent: 0 };

    /// The weight nearest to the reciprocal of a probability. Probabilities below `2^-64` count as that.
    fn nearest(probability: f64) -> Self {
        let reciprocal = 1.0 / probability.clamp(2.0_f64.powi(-64), 1.0);
        let exponent = reciprocal.log2().floor() as u8;
        let eighths = (8.0 * reciprocal / 2.0_f64.powi(exponent.into())).round() as u8;
        if eighths == 16 { Self { eighths: 8, exponent: exponent + 1 } } else { Self { eighths, exponent } }
    }

    pub(crate) fn get(self) -> f32 {
        f32::from(self.eighths) / 8.0 * self.power()
    }

    /// The power of two alone.
    pub(crate) fn power(self) -> f32 {
        2.0_f32.powi(self.exponent.into())
    }
}

/// The probability that a row is drawn with: near `probability`, a sixteenth off at most, with a reciprocal of `m / 8 * 2^e`, `m` from 8 to 15.
/// 0 for 0. What is kept counts as often as that reciprocal says, so the products are unbiased exactly.
pub fn drawn_probability(probability: f64) -> f64 {
    if probability == 0.0 { 0.0 } else { 1.0 / f64::from(Weight::nearest(probability).get()) }
}

/// Rows that take part, ascending, and their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) rows: Vec<u32>,
    pub(crate) weights: Vec<Weight>,
}

impl Kept {
    /// Chooses among rows with these scores; `budget` is how many [`Sampling::Sample`] and [`Sampling::TopK`] keep. Fewer than `2^32` rows.
    pub(crate) fn choose(sampling: Sampling, scores: &[f32], budget: usize, key: Key) -> Self {
        let nonzero = |&row: &u32| scores[row as usize] != 0.0;
        let all = 0..scores.len() as u32;
        let whole = |rows: Vec<u32>| Self { weights: vec![Weight::ONE; rows.len()], rows };
        match sampling {
            Sampling::Off => whole(all.collect()),
            Sampling::KeepNonzero => whole(all.filter(nonzero).collect()),
            Sampling::TopK => {
                let mut rows: Vec<u32> = all.filter(nonzero).collect();
                // Stable: of equal scores the first rows.
                rows.sort_by(|&i, &j| scores[j as usize].total_cmp(&scores[i as usize]));
                rows.truncate(budget);
                rows.sort_unstable();
                whole(rows)
            }
            Sampling::Sample => Self::draw(&probabilities(scores, budget), key),
        }
    }

    fn draw(probabilities: &[f64], key: Key) -> Self {
        let drawn = (0_u32..).zip(probabilities).filter_map(|(row, &probability)| {
            let weight = Weight::nearest(probability);
            let kept = probability > 0.0 && key.unit(row.into()) < 1.0 / f64::from(weight.get());
            kept.then_some((row, weight))
        });
        let (rows, weights) = drawn.unzip();
        Self { rows, weights }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The paper's loop: clamp at 1, scale up the others, until nothing is above 1.
    fn by_iteration(scores: &[f32], budget: usize) -> Vec<f64> {
        let mut certain = vec![false; scores.len()];
        loop {
            let left = budget as f64 - certain.iter().filter(|&&certain| certain).count() as f64;
            let free = scores.iter().zip(&certain).filter(|(_, certain)| !**certain);
            let sum: f64 = free.map(|(&score, _)| f64::from(score)).sum();
            let probability = |i: usize| match (certain[i], sum > 0.0) {
                (true, _) => 1.0,
                (false, true) => left * f64::from(scores[i]) / sum,
                (false, false) => 0.0,
            };
            let current: Vec<f64> = (0..scores.len()).map(probability).collect();
            if current.iter().all(|&p| p <= 1.0 + 1e-12) {
                return current;
            }
            for (certain, p) in certain.iter_mut().zip(current) {
                *certain |= p > 1.0;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn as_by_clamping_and_rescaling_again_and_again(
            scores in prop::collection::vec(prop_oneof![Just(0.0_f32), 1e-6_f32..1.0, 1.0_f32..1e6], 2..60),
        ) {
            let budget = scores.len() / 2;
            let got = probabilities(&scores, budget);
            let positive = scores.iter().filter(|&&score| score > 0.0).count();
            prop_assert!((got.iter().sum::<f64>() - budget.min(positive) as f64).abs() < 1e-9);
            if positive > budget {
                for (got, want) in got.iter().zip(by_iteration(&scores, budget)) {
                    prop_assert!((got - want).abs() < 1e-9, "{got} for {want}");
                }
            }
            for (&p, score) in got.iter().zip(&scores) {
                prop_assert!((0.0..=1.0).contains(&p) && (p > 0.0) == (*score > 0.0));
                prop_assert!((drawn_probability(p) - p).abs() <= p / 16.0 + 1e-12, "{p}");
            }
        }
    }

    #[test]
    fn weights_have_four_bits() {
        let weight = |eighths, exponent| Weight { eighths, exponent };
        for (probability, expected) in [
            (1.0, weight(8, 0)),
            (0.97, weight(8, 0)),
            (0.5, weight(8, 1)),
            (0.51, weight(8, 1)),
            (0.3, weight(13, 1)),
        ] {
            assert_eq!(Weight::nearest(probability), expected, "{probability}");
        }
        assert_eq!(weight(13, 1).get(), 3.25);
        assert_eq!(Weight::nearest(1e-300), weight(8, 64));
    }

    #[test]
    fn every_mode_keeps_what_it_says() {
        let scores = [0.0, 3.0, 1.0, 0.0, 2.0, 2.0];
        let rows = |sampling| Kept::choose(sampling, &scores, 3, Key::new(0)).rows;
        assert_eq!(rows(Sampling::Off), [0, 1, 2, 3, 4, 5]);
        assert_eq!(rows(Sampling::KeepNonzero), [1, 2, 4, 5]);
        assert_eq!(rows(Sampling::TopK), [1, 4, 5]);
        let broken = Kept::choose(Sampling::Sample, &[0.0, f32::NAN], 1, Key::new(0));
        assert_eq!(broken.rows, [0, 1], "NaN has to reach the product");
    }
}
