//! What the tests share.
#![allow(dead_code, unused_imports, unused_macros, reason = "every test uses a part of it")]

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thinwire_int4::Isa;

pub(crate) fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Codes of which every value occurs, the extremes often.
pub(crate) fn codes(len: usize, most: i8, random: &mut impl Rng) -> Vec<i8> {
    let extreme = |random: &mut _| if RngExt::random::<bool>(random) { most } else { -most };
    (0..len)
        .map(
            |_| {
                if random.random_range(0..4) == 0 {
                    extreme(random)
                } else {
                    random.random_range(-most..=most)
                }
            },
        )
        .collect()
}

/// The instruction set of this name, if this processor has it.
///
/// # Panics
/// If it is missing and `THINWIRE_TEST_ISAS`, a list like `avx2,avx512,amx`, names it.
pub(crate) fn isa(name: &str) -> Option<Isa> {
    let found = Isa::available().into_iter().find(|isa| isa.name() == name);
    let required = std::env::var("THINWIRE_TEST_ISAS").unwrap_or_default();
    let missing = found.is_none() && required.split(',').any(|required| required == name);
    assert!(!missing, "THINWIRE_TEST_ISAS names {name}, which this processor lacks");
    if found.is_none() {
        eprintln!("{name}: NOT RUN, this processor has no such instructions");
    }
    found
}

/// A module for each instruction set, with a test for each function of the caller's that takes an [`Isa`].
macro_rules! for_each_isa {
    ($($test:ident),+ $(,)?) => {
        for_each_isa!(@ portable [$($test),+]);
        for_each_isa!(@ avx2 [$($test),+]);
        for_each_isa!(@ avx512 [$($test),+]);
        for_each_isa!(@ amx [$($test),+]);
        for_each_isa!(@ neon [$($test),+]);
    };
    (@ $name:ident [$($test:ident),+]) => {
        mod $name {
            $(#[test]
            fn $test() {
                if let Some(isa) = crate::common::isa(stringify!($name)) {
                    super::$test(isa);
                }
            })+
        }
    };
}
pub(crate) use for_each_isa;

/// Values of which some are far from the others, and some on the edges between two codes of a step of 0.5, or on the largest.
pub(crate) fn values(len: usize, random: &mut impl Rng) -> Vec<f32> {
    let value = |random: &mut _| match RngExt::random_range(random, 0..20) {
        0 => RngExt::random_range(random, -20.0_f32..20.0),
        1 => RngExt::random_range(random, -16_i32..=16) as f32 * 0.25,
        _ => RngExt::random_range(random, -1.0_f32..1.0),
    };
    (0..len).map(|_| value(random)).collect()
}

/// Runs `work` on a pool of so many threads.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads").install(work)
}

/// `x` `[rows, columns]` times the block-diagonal matrix of orthonormal Hadamard matrices, entry by entry.
pub(crate) fn hadamard_by_matrix(x: &[f64], columns: usize, block: usize) -> Vec<f64> {
    let norm = 1.0 / (block as f64).sqrt();
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { norm } else { -norm };
    let transformed = |i: usize| {
        let (start, j) = (i - i % columns % block, i % columns % block);
        (0..block).map(|k| sign(k, j) * x[start + k]).sum()
    };
    (0..x.len()).map(transformed).collect()
}
