//! The next token, from its logits.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::GenerateError;

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f64,
    /// Only so many of the most likely tokens.
    pub top_k: Option<NonZeroUsize>,
    /// Only the fewest of the most likely tokens that together have this probability (Holtzman et al., 2020); 1 for
    /// all.
    pub top_p: f64,
    /// Decides all draws.
    pub seed: u64,
}

impl Sampling {
    /// Always the most likely token.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: None, top_p: 1.0, seed: 0 };

    fn validate(&self) -> Result<(), GenerateError> {
        let refuse = |name, value, expected| Err(GenerateError::Sampling { name, value, expected });
        let Self { temperature, top_p, .. } = *self;
        if !(temperature.is_finite() && temperature >= 0.0) {
            return refuse("temperature", temperature, "0 or a positive number");
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return refuse("top-p", top_p, "above 0, at most 1");
        }
        Ok(())
    }
}

/// Draws token after token, the same ones for the same seed and logits.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
}

/// A token and its logit, later its weight.
type Candidate = (usize, f64);

impl Sampler {
    /// A sampler at its first token.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(sampling: Sampling) -> Result<Self, GenerateError> {
        sampling.validate()?;
        let mut key = Sha256::new_with_prefix(b"thinwire sampling");
        key.update(sampling.seed.to_le_bytes());
        Ok(Self { sampling, random: ChaCha8Rng::from_seed(key.finalize().into()) })
    }

    /// The token that follows `position` others, from the `logits` of all tokens. Of equal ones the first counts as the
    /// most likely.
    ///
    /// # Errors
    /// A logit is not finite.
    pub fn pick(&mut self, logits: &[f32], position: usize) -> Result<u32, GenerateError> {
        if let Some(id) = logits.iter().position(|logit| !logit.is_finite()) {
            return Err(GenerateError::Logit { id, position, value: logits[id] });
        }
        let mut candidates: Vec<Candidate> =
            logits.iter().enumerate().map(|(id, &logit)| (id, f64::from(logit))).collect();
        let Sampling { temperature, top_k, top_p, .. } = self.sampling;
        let most = if temperature == 0.0 { Some(1) } else { top_k.map(NonZeroUsize::get) };
        if let Some(most) = most.filter(|&most| most < candidates.len()) {
            candidates.select_nth_unstable_by(most - 1, likelier);
            candidates.truncate(most);
        }
        if candidates.len() == 1 {
            return Ok(candidates[0].0 as u32);
        }
        let largest = candidates.iter().fold(f64::NEG_INFINITY, |max, &(_, logit)| max.max(logit));
        let weight = |logit: f64| ((logit - largest) / temperature).exp();
        if top_p < 1.0 {
            candidates.sort_unstable_by(likelier);
            let total: f64 = candidates.iter().map(|&(_, logit)| weight(logit)).sum();
            let mut left = top_p * total;
            let enough = candidates.iter().position(|&(_, logit)| {
                left -= weight(logit);
                left <= 0.0
            });
            candidates.truncate(enough.map_or(candidates.len(), |last| last + 1));
        }
        for (_, logit) in &mut candidates {
            *logit = weight(*logit);
        }
        Ok(self.draw(&candidates))
    }

    /// One of the candidates, with the probability of its share of the weights.
    fn draw(&mut self, candidates: &[Candidate]) -> u32 {
        let total: f64 = candidates.iter().map(|&(_, weight)| weight).sum();
        // 53 bits: every value of [0, 1) that is a multiple of 2^-53.
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = unit * total;
        let drawn = candidates.iter().find(|&&(_, weight)| {
            left -= weight;
            left < 0.0
        });
        // None by rounding alone.
        drawn.or(candidates.last()).map_or(0, |&(id, _)| id as u32)
    }
}

/// The likelier candidate first; of equal ones the one with the lower id.
fn likelier(a: &Candidate, b: &Candidate) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [0.0, 2.0, -1.0, 2.0, 1.0];

    fn sampling(temperature: f64, top_k: usize, top_p: f64) -> Sampling {
        Sampling { temperature, top_k: NonZeroUsize::new(top_k), top_p, seed: 3 }
    }

    /// How often each token is drawn.
    fn counts(sampling: Sampling, draws: usize) -> [usize; 5] {
        let mut sampler = Sampler::new(sampling).unwrap();
        let mut counts = [0; 5];
        (0..draws).for_each(|i| counts[sampler.pick(&LOGITS, i).unwrap() as usize] += 1);
        counts
    }

    #[test]
    fn temperature_0_takes_the_first_of_the_largest() {
        assert_eq!(counts(Sampling::GREEDY, 9), [0, 9, 0, 0, 0]);
    }

    #[test]
    fn draws_follow_the_softmax() {
        const DRAWS: usize = 40_000;
        for temperature in [0.5, 1.0, 3.0] {
            let weights = LOGITS.map(|logit| (f64::from(logit) / temperature).exp());
            let total: f64 = weights.iter().sum();
            for (count, weight) in counts(sampling(temperature, 0, 1.0), DRAWS).into_iter().zip(weights) {
                let p = weight / total;
                let five_deviations = 5.0 * (DRAWS as f64 * p * (1.0 - p)).sqrt();
                assert!(
                    (count as f64 - DRAWS as f64 * p).abs() < five_deviations,
                    "{temperature} {p} {count}"
                );
            }
        }
    }

    #[test]
    fn unlikely_tokens_are_cut_off() {
        let drawn = |sampling| counts(sampling, 2000).map(|count| count > 0);
        assert_eq!(drawn(sampling(1.0, 1, 1.0)), [false, true, false, false, false]);
        assert_eq!(drawn(sampling(1.0, 2, 1.0)), [false, true, false, true, false]);
        assert_eq!(drawn(sampling(1.0, 9, 1.0)), [true; 5]);
        // Probabilities 0.05, 0.38, 0.02, 0.38, 0.14: sums 0.38, 0.77, 0.91, 0.96, 1.
        assert_eq!(drawn(sampling(1.0, 0, 0.38)), [false, true, false, false, false]);
        assert_eq!(drawn(sampling(1.0, 0, 0.5)), [false, true, false, true, false]);
        assert_eq!(drawn(sampling(1.0, 0, 0.8)), [false, true, false, true, true]);
        assert_eq!(drawn(sampling(1.0, 0, 0.95)), [true, true, false, true, true]);
        // Of the two best each has half.
        assert_eq!(drawn(sampling(1.0, 2, 0.4)), [false, true, false, false, false]);
    }

    #[test]
    fn the_seed_decides() {
        let sequence = |seed| {
            let mut sampler = Sampler::new(Sampling { seed, ..sampling(1.0, 0, 1.0) }).unwrap();
            (0..64).map(|i| sampler.pick(&LOGITS, i).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }

    #[test]
    fn settings_and_logits_out_of_range_are_refused() {
        for (temperature, top_p) in [(-1.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1.1), (1.0, f64::NAN)] {
            assert!(Sampler::new(sampling(temperature, 0, top_p)).is_err(), "{temperature} {top_p}");
        }
        let error = Sampler::new(Sampling::GREEDY).unwrap().pick(&[0.0, f32::NAN], 7).unwrap_err();
        assert_eq!(error.to_string(), "the logit of token 1 at position 7 is NaN: there is no next token");
    }
}
