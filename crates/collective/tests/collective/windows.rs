use std::thread;
use std::time::Duration;

use rand::RngExt;

use crate::support::{bits, codec, generator, on_each_rank, tensors, tiles_of};

/// Calls of all kinds, lengths and codecs one after the other on the same group, with ranks that stop now and then. A tile that
/// is overwritten before it was read would end the test, a stale one would change a sum.
#[test]
fn ranks_that_stop_at_random_never_see_a_tile_of_another_call() {
    for (ranks, seed) in [(2, 1), (3, 2), (4, 3), (6, 4)] {
        let x = tensors(ranks, 4000, seed);
        on_each_rank(ranks, tiles_of(16), |mut group| {
            let (mut plan, mut pauses) = (generator(seed), generator(100 * seed + group.rank() as u64));
            for _ in 0..60 {
                // What a group of 8 values of this size can be off by with 4 bits, and what f32 can.
                let (spec, tolerance) = [("f32", 1e-3), ("group:group=8", 60.0)][plan.random_range(0..2)];
                let (values, spec) = (plan.random_range(0..4000), codec(spec));
                let near = |y: &[f32], expected: &mut dyn Iterator<Item = f32>| {
                    for (y, expected) in y.iter().zip(expected) {
                        assert!((y - expected).abs() < tolerance, "{y} for {expected}");
                    }
                };
                if pauses.random_bool(0.2) {
                    thread::sleep(Duration::from_micros(pauses.random_range(0..500)));
                }
                let (mine, rank) = (&x[group.rank()][..values], group.rank());
                let own = group.segments(&spec, values).segment(rank);
                match plan.random_range(0..3) {
                    0 => {
                        let mut sum = vec![f32::NAN; own.len()];
                        group.reduce_scatter(&spec, mine, &mut sum).unwrap();
                        near(&sum, &mut own.map(|i| x.iter().map(|x| x[i]).sum()));
                    }
                    1 => {
                        let mut y = vec![f32::NAN; values];
                        group.all_gather(&spec, &mine[own.clone()], &mut y).unwrap();
                        let segments = group.segments(&spec, values);
                        near(&y, &mut (0..ranks).flat_map(|rank| x[rank][segments.segment(rank)].to_vec()));
                    }
                    _ => {
                        let mut y = vec![f32::NAN; values];
                        group.all_reduce(&spec, mine, &mut y).unwrap();
                        near(&y, &mut (0..values).map(|i| x.iter().map(|x| x[i]).sum()));
                    }
                }
            }
        });
    }
}

/// How far a rank is ahead of the others, and on how many cores, does not change a bit.
#[test]
fn a_slow_rank_does_not_change_the_result() {
    let x = tensors(3, 20_000, 9);
    let run = |slow: usize| {
        on_each_rank(3, tiles_of(512), |mut group| {
            let mut y = vec![0.0; 20_000];
            for _ in 0..3 {
                if group.rank() == slow {
                    thread::sleep(Duration::from_millis(20));
                }
                group.all_reduce(&codec("group"), &x[group.rank()][..], &mut y).unwrap();
            }
            bits(&y)
        })
    };
    assert_eq!(run(0), run(2));
}
