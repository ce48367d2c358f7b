//! A rank whose process is killed in the middle of a call is named by every other one long before the deadline; one that stops, at the
//! deadline.

use std::fs;

use tempfile::TempDir;
use thinwire_collective::{Settings, memory};

use crate::group::{Between, Order, Rank};
use crate::rank::{VALUES, codec, some_bits, tensor};

const RANKS: usize = 4;
const TILE: usize = 1024;
const BAD: usize = 2;

/// Milliseconds that no test waits.
const LONG: u64 = 30_000;

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

fn start(between: Between, folder: &TempDir, stops: Option<usize>, deadline_ms: u64) -> Vec<Rank> {
    let order =
        |rank| Order { between, folder: folder.path(), rank, ranks: RANKS, tile: TILE, deadline_ms, stops };
    (0..RANKS).map(|rank| order(rank).start()).collect()
}

/// All ranks are in their second call, in the middle of which the bad one has stopped.
fn in_the_middle(between: Between, folder: &TempDir, deadline_ms: u64) -> Vec<Rank> {
    let mut ranks = start(between, folder, Some(BAD), deadline_ms);
    let expected = expected();
    for rank in &mut ranks {
        assert_eq!(rank.says(), expected);
    }
    assert_eq!(ranks[BAD].says(), "stopped");
    ranks
}

/// Every other rank names the bad one; the longest that one of them took, in milliseconds.
fn named(ranks: &mut [Rank]) -> u64 {
    let others = ranks.iter_mut().enumerate().filter(|&(rank, _)| rank != BAD);
    let times = others.map(|(rank, process)| {
        let said = process.says();
        let parts = said.strip_prefix("error after ").and_then(|said| said.split_once(" ms: "));
        let (took, error) = parts.unwrap_or_else(|| panic!("rank {rank}: {said}"));
        assert!(error.contains("rank 2 "), "rank {rank}: {said}");
        took.parse::<u64>().unwrap()
    });
    times.max().unwrap()
}

fn a_killed_rank_is_named(between: Between) {
    let folder = TempDir::new().unwrap();
    let mut ranks = in_the_middle(between, &folder, LONG);
    ranks[BAD].kill();
    assert!(named(&mut ranks) < LONG / 3);
    if between == Between::Shared {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left over");
    }
}

#[test]
fn a_rank_that_stops_is_named_at_the_deadline() {
    for between in [Between::Shared, Between::Links] {
        let folder = TempDir::new().unwrap();
        let mut ranks = in_the_middle(between, &folder, 5000);
        assert!((5000..LONG / 3).contains(&named(&mut ranks)), "{between:?}");
    }
}

#[test]
fn a_killed_rank_is_named_in_shared_memory() {
    a_killed_rank_is_named(Between::Shared);
}

#[test]
fn a_killed_rank_is_named_over_links() {
    a_killed_rank_is_named(Between::Links);
}

#[test]
fn processes_have_the_bits_of_threads() {
    let expected = expected();
    for between in [Between::Shared, Between::Links] {
        let folder = TempDir::new().unwrap();
        // None is killed before all have said what came out: it may have been sent and not come yet.
        let mut ranks = start(between, &folder, None, LONG);
        for rank in &mut ranks {
            assert_eq!(rank.says(), expected, "{between:?}");
            assert_eq!(rank.says(), expected, "{between:?}");
        }
    }
}
