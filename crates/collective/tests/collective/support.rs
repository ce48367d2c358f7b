//! Ranks as threads, and random tensors for them.

use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thinwire_codec::CodecSpec;
use thinwire_collective::{Group, Settings, memory};

pub(crate) fn codec(text: &str) -> CodecSpec {
    text.parse().unwrap()
}

/// With a deadline that no test reaches unless something is wrong.
pub(crate) fn tiles_of(tile: usize) -> Settings {
    Settings { tile, deadline: Duration::from_secs(20) }
}

/// What `work` returns on each rank.
pub(crate) fn on_each_rank<R: Send>(
    ranks: usize,
    settings: Settings,
    work: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let groups = memory::group(ranks, &settings).unwrap();
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = groups.into_iter().map(|group| scope.spawn(move || work(group))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// What each rank gets of `x`, one tensor a rank, in one call.
pub(crate) fn all_reduce(spec: &str, tile: usize, x: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let spec = codec(spec);
    on_each_rank(x.len(), tiles_of(tile), |mut group| {
        let x = &x[group.rank()];
        let mut y = vec![f32::NAN; x.len()];
        group.all_reduce(&spec, &x[..], &mut y).unwrap();
        y
    })
}

pub(crate) fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Values of full precision around zero, one tensor a rank, a few of them much larger than the others.
pub(crate) fn tensors(ranks: usize, values: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = generator(seed);
    let mut value = || {
        let size = if rng.random_bool(0.01) { 30.0 } else { 1.0 };
        (0..6).map(|_| rng.random_range(-1.0..1.0_f32)).sum::<f32>() * size
    };
    (0..ranks).map(|_| (0..values).map(|_| value()).collect()).collect()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
