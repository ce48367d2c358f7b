//! Ranks over links: what the group does is the same, so only what differs is tested.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use thinwire_collective::{CollectiveError, Compensator, Group, Settings, links};
use thinwire_link::{Deadlines, Hello, Link, LinkConfig, LinkError, RunId, Terms, memory, tcp};

use crate::support::{all_reduce, bits, codec, tensors};

const RUN: RunId = RunId([3; 16]);

fn config(rank: usize, other: usize, ranks: usize, progress: Duration) -> LinkConfig {
    let (stage, peer_stage) = (rank as u32, other as u32);
    let hello = Hello { run: RUN, stage, peer_stage, stages: ranks as u32, terms: Terms::new() };
    LinkConfig { hello, deadlines: Deadlines { progress, ..Deadlines::default() }, rate: None }
}

/// How two ranks are joined.
type Join = fn(&LinkConfig, &LinkConfig) -> Result<(Link, Link), LinkError>;

/// A link of every rank with every other one, by rank.
fn all_pairs(ranks: usize, progress: Duration, join: Join) -> Vec<Vec<(usize, Link)>> {
    let mut links: Vec<Vec<(usize, Link)>> = (0..ranks).map(|_| Vec::new()).collect();
    for first in 0..ranks {
        for second in first + 1..ranks {
            let configs = [config(first, second, ranks, progress), config(second, first, ranks, progress)];
            let (to_second, to_first) = join(&configs[0], &configs[1]).unwrap();
            links[first].push((second, to_second));
            links[second].push((first, to_first));
        }
    }
    links
}

fn on_each_rank<R: Send>(ranks: usize, settings: Settings, work: impl Fn(Group) -> R + Sync) -> Vec<R> {
    joined(all_pairs(ranks, Duration::from_millis(300), memory::pair), settings, work)
}

fn joined<R: Send>(
    links: Vec<Vec<(usize, Link)>>,
    settings: Settings,
    work: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = links
            .into_iter()
            .enumerate()
            .map(|(rank, links)| {
                let group = links::group(rank, RUN, links, &settings).unwrap();
                scope.spawn(move || work(group))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

const SETTINGS: Settings = Settings { tile: 500, deadline: Duration::from_secs(20) };

/// The same bits as between threads, call after call, and after a pause that is longer than the links' own deadline.
#[test]
fn links_and_memory_give_the_same_bits() {
    for (ranks, values) in [(2, 30_000), (4, 9999)] {
        let x = tensors(ranks, values, 50);
        for spec in ["group", "bf16", "f32"] {
            let expected = bits(&all_reduce(spec, SETTINGS.tile, &x)[0]);
            on_each_rank(ranks, SETTINGS, |mut group| {
                let mut y = vec![0.0; values];
                for call in 0..3 {
                    if call == 2 {
                        thread::sleep(Duration::from_millis(400));
                    }
                    group.all_reduce(&codec(spec), &x[group.rank()][..], &mut y).unwrap();
                    assert_eq!(bits(&y), expected, "{spec}, call {call}");
                }
            });
        }
    }
}

/// TCP cuts what is sent into pieces, and its buffers fill up.
#[test]
fn tcp_and_memory_give_the_same_bits() {
    let (ranks, values) = (3, 400_000);
    let x = tensors(ranks, values, 53);
    for spec in ["group", "f32"] {
        let expected = bits(&all_reduce(spec, SETTINGS.tile, &x)[0]);
        joined(all_pairs(ranks, Duration::from_secs(10), tcp::pair), SETTINGS, |mut group| {
            let mut y = vec![0.0; values];
            group.all_reduce(&codec(spec), &x[group.rank()][..], &mut y).unwrap();
            assert_eq!(bits(&y), expected, "{spec}");
        });
    }
}

/// Many calls without a pause, so that ranks are as far ahead of one another as they can be, with a compensator.
#[test]
fn ranks_ahead_of_one_another_do_not_disturb_each_other() {
    let (ranks, values) = (3, 4000);
    let x = tensors(ranks, values, 51);
    let ys = on_each_rank(ranks, Settings { tile: 64, ..SETTINGS }, |mut group| {
        let x = &x[group.rank()];
        let mut compensator = Compensator::new(thinwire_collective::Coefficients::default(), values);
        let mut y = vec![0.0; values];
        for _ in 0..30 {
            group.all_reduce(&codec("group:group=64"), &compensator.apply(x), &mut y).unwrap();
            compensator.update(x, &y, ranks);
        }
        bits(&y)
    });
    assert!(ys.iter().all(|y| *y == ys[0]));
}

/// After a good call, rank 2 of four does `bad`; the errors of the others, and how long they took.
fn others(deadline: Duration, bad: impl Fn(Group) + Sync) -> Vec<(CollectiveError, Duration)> {
    let good = Barrier::new(4);
    let ranks = on_each_rank(4, Settings { tile: 100, deadline }, |mut group| {
        let (x, mut y) = ([1.0; 3000], [0.0; 3000]);
        group.all_reduce(&codec("group:group=64"), &x[..], &mut y).unwrap();
        good.wait();
        if group.rank() == 2 {
            bad(group);
            return None;
        }
        let start = Instant::now();
        let error = group.all_reduce(&codec("group:group=64"), &x[..], &mut y).unwrap_err();
        Some((error, start.elapsed()))
    });
    ranks.into_iter().flatten().collect()
}

fn named(errors: &[(CollectiveError, Duration)], within: Duration) {
    assert_eq!(errors.len(), 3);
    for (error, took) in errors {
        assert!(error.to_string().contains("rank 2 "), "{error}");
        assert!(*took < within, "{took:?}: {error}");
    }
}

#[test]
fn a_rank_that_is_gone_is_named_at_once() {
    named(&others(SETTINGS.deadline, drop), Duration::from_secs(2));
}

#[test]
fn a_rank_that_is_late_is_named_after_the_deadline() {
    let deadline = Duration::from_millis(500);
    let errors = others(deadline, |group| {
        thread::sleep(Duration::from_secs(2));
        drop(group);
    });
    named(&errors, deadline + Duration::from_secs(1));
}

#[test]
fn a_rank_in_another_call_is_named_with_both_calls() {
    let errors = others(SETTINGS.deadline, |mut group| {
        let (x, mut y) = ([1.0; 3001], [0.0; 3001]);
        assert!(group.all_reduce(&codec("group:group=64"), &x[..], &mut y).is_err());
    });
    named(&errors, Duration::from_secs(2));
    assert!(errors.iter().any(|(error, _)| error.to_string().contains("all-reduce of 3001 values")));
}

#[test]
fn a_rank_in_an_all_gather_is_noticed_by_an_all_reduce_at_once() {
    let errors = others(SETTINGS.deadline, |mut group| {
        let spec = codec("group:group=64");
        let own = group.segments(&spec, 3000).segment(2).len();
        let error = group.all_gather(&spec, &vec![0.0; own], &mut [0.0; 3000]).unwrap_err();
        assert!(error.to_string().contains("all-reduce of 3000 values"), "{error}");
    });
    named(&errors, Duration::from_secs(2));
    assert!(errors.iter().any(|(error, _)| error.to_string().contains("all-gather of 3000 values")));
}

#[test]
fn links_that_make_no_group_are_refused() {
    let mut links = all_pairs(3, Duration::from_secs(1), memory::pair).swap_remove(0);
    links.remove(0);
    let error = links::group(0, RUN, links, &SETTINGS).unwrap_err();
    assert_eq!(error, CollectiveError::Links { rank: 0, with: vec![0, 2] });
}
