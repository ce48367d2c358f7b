//! Reproducible starting values: a function of the seed and the parameter's name alone, so no split changes them.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, Uniform};
use sha2::{Digest, Sha256};

use super::Init;

impl Init {
    /// `len` starting values for the parameter `name`.
    pub(crate) fn values(self, seed: u64, name: &str, len: usize) -> Vec<f32> {
        match self {
            Init::Zeros => vec![0.0; len],
            Init::Ones => vec![1.0; len],
            Init::Normal(deviation) => {
                let normal =
                    Normal::new(0.0, deviation).expect("standard deviations are finite and positive");
                normal.sample_iter(generator(seed, name)).take(len).collect()
            }
            Init::Uniform(bound) => {
                let uniform = Uniform::new(-bound, bound).expect("bounds are finite and positive");
                uniform.sample_iter(generator(seed, name)).take(len).collect()
            }
        }
    }
}

fn generator(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = Sha256::new();
    key.update(seed.to_le_bytes());
    key.update(name.as_bytes());
    ChaCha8Rng::from_seed(key.finalize().into())
}
