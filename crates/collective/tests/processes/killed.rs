//! A rank whose process is killed in the middle of a call is named by every other one long before the deadline.

use std::fs;

use tempfile::TempDir;
use thinwire_collective::{Settings, memory};

use crate::group::{Between, Order, Rank};
use crate::rank::{VALUES, codec, some_bits, tensor};

const RANKS: usize = 4;
const TILE: usize = 1024;
const KILLED: usize = 2;

/// As threads have it.
fn expected() -> String {
    let groups = memory::group(RANKS, &Settings { tile: TILE, ..Settings::default() }).unwrap();
    let sums = std::thread::scope(|scope| {
        let ranks = groups.into_iter().map(|mut group| {
            scope.spawn(move || {
                let mut y = vec![0.0; VALUES];
                group.all_reduce(&codec(), &tensor(group.rank())[..], &mut y).unwrap();
                some_bits(&y)
            })
        });
        ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
    });
    sums[0].clone()
}

fn start(between: Between, folder: &TempDir, stops: Option<usize>) -> Vec<Rank> {
    let order = |rank| Order {
        between,
        folder: folder.path(),
        rank,
        ranks: RANKS,
        tile: TILE,
        deadline_ms: 30_000,
        stops,
    };
    (0..RANKS).map(|rank| order(rank).start()).collect()
}

fn a_killed_rank_is_named(between: Between) {
    let folder = TempDir::new().unwrap();
    let mut ranks = start(between, &folder, Some(KILLED));
    let expected = expected();
    for rank in &mut ranks {
        assert_eq!(rank.says(), expected);
    }
    assert_eq!(ranks[KILLED].says(), "stopped");
    ranks[KILLED].kill();
    for (rank, process) in ranks.iter_mut().enumerate().filter(|&(rank, _)| rank != KILLED) {
        let said = process.says();
        let (took, error) =
            said.strip_prefix("error after ").and_then(|said| said.split_once(" ms: ")).unwrap();
        assert!(error.contains("rank 2 "), "rank {rank}: {said}");
        assert!(took.parse::<u64>().unwrap() < 10_000, "rank {rank}: {said}");
    }
    if between == Between::Shared {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left over");
    }
}

#[test]
fn in_shared_memory() {
    a_killed_rank_is_named(Between::Shared);
}

#[test]
fn over_links() {
    a_killed_rank_is_named(Between::Links);
}

#[test]
fn processes_have_the_bits_of_threads() {
    let expected = expected();
    for between in [Between::Shared, Between::Links] {
        let folder = TempDir::new().unwrap();
        for mut rank in start(between, &folder, None) {
            assert_eq!(rank.says(), expected, "{between:?}");
            assert_eq!(rank.says(), expected, "{between:?}");
        }
    }
}
