//! Once the first calls have sized everyone's memory, a call allocates nothing.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread;
use std::time::Duration;

use thinwire_codec::CodecSpec;
use thinwire_collective::{Coefficients, Compensator, Group, Settings, links, memory};
use thinwire_link::{Deadlines, Hello, LinkConfig, RunId, Terms};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `block` came from `System`, with this layout; the caller vouches for the size.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RANKS: usize = 3;
const VALUES: usize = 50_000;
const SETTINGS: Settings = Settings { tile: 1024, deadline: Duration::from_secs(20) };
const CALLS: usize = 10;

/// Allocations of a rank's thread in calls of all kinds after as many others.
fn allocations_of(group: &mut Group, codecs: &[CodecSpec]) -> usize {
    let x: Vec<f32> = (0..VALUES).map(|i| (i as f32 * 0.7).sin()).collect();
    let mut y = vec![0.0; VALUES];
    let mut compensator = Compensator::new(Coefficients::default(), VALUES);
    let mut calls = |group: &mut Group| {
        for codec in codecs {
            group.all_reduce(codec, &compensator.apply(&x), &mut y).unwrap();
            compensator.update(&x, &y, RANKS);
            let own = group.segments(codec, VALUES).segment(group.rank());
            group.reduce_scatter(codec, &x[..], &mut y[own.clone()]).unwrap();
            group.all_gather(codec, &x[own], &mut y).unwrap();
        }
    };
    (0..CALLS).for_each(|_| calls(group));
    let before = ALLOCATIONS.get();
    (0..CALLS).for_each(|_| calls(group));
    ALLOCATIONS.get() - before
}

fn on_each_rank(groups: Vec<Group>) -> Vec<usize> {
    let codecs: Vec<CodecSpec> =
        ["group", "group:bits=8", "bf16", "f32"].iter().map(|spec| spec.parse().unwrap()).collect();
    let codecs = &codecs[..];
    thread::scope(|scope| {
        let work = |mut group: Group| allocations_of(&mut group, codecs);
        let ranks: Vec<_> = groups.into_iter().map(|group| scope.spawn(move || work(group))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn between_threads() {
    assert_eq!(on_each_rank(memory::group(RANKS, &SETTINGS).unwrap()), [0; RANKS]);
}

/// How many messages are under way at once differs from call to call, so that a buffer may be added to the others late; of some
/// 30,000 messages that are sent and received, hardly any.
#[test]
fn over_links() {
    const RUN: RunId = RunId([5; 16]);
    let config = |rank: usize, other: usize| {
        let (stage, peer_stage) = (rank as u32, other as u32);
        let hello = Hello { run: RUN, stage, peer_stage, stages: RANKS as u32, terms: Terms::new() };
        LinkConfig { hello, deadlines: Deadlines::default(), rate: None }
    };
    let mut joined: Vec<Vec<_>> = (0..RANKS).map(|_| Vec::new()).collect();
    for first in 0..RANKS {
        for second in first + 1..RANKS {
            let configs = [config(first, second), config(second, first)];
            let (to_second, to_first) = thinwire_link::memory::pair(&configs[0], &configs[1]).unwrap();
            joined[first].push((second, to_second));
            joined[second].push((first, to_first));
        }
    }
    let groups = joined.into_iter().enumerate();
    let groups = groups.map(|(rank, links)| links::group(rank, RUN, links, &SETTINGS).unwrap());
    for allocations in on_each_rank(groups.collect()) {
        assert!(allocations < 100, "{allocations} allocations");
    }
}
