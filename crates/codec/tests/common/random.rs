use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A reproducible generator.
pub fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Standard normal, by the sum of twelve uniforms.
pub fn gaussian(rng: &mut impl Rng) -> f32 {
    (0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0
}

/// Like an activation: Gaussian values of which one in thirty is up to a hundred times larger.
pub fn activation(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = generator(seed);
    (0..len)
        .map(|_| {
            gaussian(&mut rng) * if rng.random_bool(1.0 / 30.0) { rng.random_range(1.0..100.0) } else { 1.0 }
        })
        .collect()
}
