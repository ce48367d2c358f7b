//! One rank goes wrong; every other one must have an error in time that names it.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use thinwire_collective::{CollectiveError, Contribution, Group, Settings, memory};

use crate::support::{codec, on_each_rank};

const RANKS: usize = 4;
const BAD: usize = 2;
const VALUES: usize = 4000;

const SETTINGS: Settings = Settings { tile: 128, deadline: Duration::from_secs(5) };

/// Of tests that wait for it.
const SOON: Settings = Settings { deadline: Duration::from_millis(500), ..SETTINGS };

fn all_reduce(group: &mut Group, x: &(impl Contribution + ?Sized)) -> Result<(), CollectiveError> {
    group.all_reduce(&codec("group:group=64"), x, &mut vec![0.0; x.values()])
}

/// Two good calls; then the bad rank does `bad`, and the others' errors come back, by rank, with the time they took.
fn others(settings: Settings, bad: impl Fn(Group) + Sync) -> Vec<(usize, CollectiveError, Duration)> {
    // A rank that is still in the last good call may hear of the next one.
    let good = Barrier::new(RANKS);
    let ranks = on_each_rank(RANKS, settings, |mut group| {
        let x = vec![group.rank() as f32; VALUES];
        for _ in 0..2 {
            all_reduce(&mut group, &x[..]).unwrap();
        }
        good.wait();
        let (rank, start) = (group.rank(), Instant::now());
        if rank == BAD {
            bad(group);
            return None;
        }
        let error = all_reduce(&mut group, &x[..]).unwrap_err();
        let took = start.elapsed();
        assert_eq!(all_reduce(&mut group, &x[..]), Err(error.clone()), "the group has ended");
        Some((rank, error, took))
    });
    ranks.into_iter().flatten().collect()
}

/// Every other rank names the bad one, within this time.
fn named(errors: &[(usize, CollectiveError, Duration)], within: Duration) {
    assert_eq!(errors.len(), RANKS - 1);
    for (rank, error, took) in errors {
        let text = error.to_string();
        assert!(text.contains(&format!("rank {BAD} ")), "rank {rank}: {text}");
        assert!(*took < within, "rank {rank} took {took:?}");
    }
}

/// Long before the deadline; a panic may print for a while.
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn a_rank_that_is_gone_is_named_at_once() {
    let errors = others(SETTINGS, drop);
    named(&errors, AT_ONCE);
    assert!(errors.iter().any(|(_, error, _)| matches!(error, CollectiveError::Left { rank: BAD, .. })));
}

/// Panics when a late tile is needed.
struct Dies;

impl Contribution for Dies {
    fn values(&self) -> usize {
        VALUES
    }

    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32] {
        assert!(range.start % 1024 < 700, "as intended");
        scratch.fill(1.0);
        scratch
    }
}

#[test]
fn a_rank_that_dies_in_the_middle_of_a_call_is_named_at_once() {
    let errors = others(SETTINGS, |mut group| {
        let died = catch_unwind(AssertUnwindSafe(|| all_reduce(&mut group, &Dies)));
        assert!(died.is_err());
        drop(group);
    });
    named(&errors, AT_ONCE);
}

#[test]
fn a_rank_that_is_late_is_named_after_the_deadline_and_told_so() {
    let errors = others(SOON, |mut group| {
        thread::sleep(2 * SOON.deadline);
        let error = all_reduce(&mut group, &[0.0; VALUES][..]).unwrap_err();
        let CollectiveError::GaveUp { reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains("rank 2 is late"), "{reason}");
    });
    named(&errors, SOON.deadline + Duration::from_secs(1));
    assert!(errors.iter().all(|(_, _, took)| *took >= SOON.deadline));
}

type Call = fn(&mut Group) -> Result<(), CollectiveError>;

#[test]
fn a_rank_in_another_call_is_named_with_both_calls() {
    let cases: [(&str, Call); 4] = [
        ("all-reduce of 3999 values", |group| all_reduce(group, &[0.0; VALUES - 1][..])),
        ("by group:bits=8", |group| {
            group.all_reduce(&codec("group:bits=8,group=64"), &[0.0; VALUES][..], &mut [0.0; VALUES])
        }),
        ("by raw:dtype=f32", |group| group.all_reduce(&codec("f32"), &[0.0; VALUES][..], &mut [0.0; VALUES])),
        ("reduce-scatter of 4000 values", |group| {
            let spec = codec("group:group=64");
            let own = group.segments(&spec, VALUES).segment(BAD).len();
            group.reduce_scatter(&spec, &[0.0; VALUES][..], &mut vec![0.0; own])
        }),
    ];
    for (theirs, call) in cases {
        let errors = others(SETTINGS, |mut group| {
            assert!(call(&mut group).is_err());
        });
        named(&errors, AT_ONCE);
        let told = errors.iter().filter(|(_, error, _)| error.to_string().contains(theirs));
        assert!(told.count() > 0, "{theirs}: {errors:?}");
        let ours = |error: &CollectiveError| {
            error.to_string().contains("call 2: all-reduce of 4000 values by group:bits=4")
        };
        assert!(errors.iter().any(|(_, error, _)| ours(error)), "{errors:?}");
    }
}

/// An all-gather has no pushes but says what it is as the others do.
#[test]
fn a_rank_in_an_all_gather_is_noticed_by_an_all_reduce_at_once() {
    let errors = others(SETTINGS, |mut group| {
        let spec = codec("group:group=64");
        let own = group.segments(&spec, VALUES).segment(BAD).len();
        let error = group.all_gather(&spec, &vec![0.0; own], &mut [0.0; VALUES]).unwrap_err();
        assert!(error.to_string().contains("all-reduce of 4000 values"), "{error}");
    });
    named(&errors, AT_ONCE);
    assert!(errors.iter().any(|(_, error, _)| error.to_string().contains("all-gather of 4000 values")));
}

#[test]
fn a_value_that_is_not_finite_is_named_with_its_place() {
    let errors = others(SETTINGS, |mut group| {
        let mut x = [1.0; VALUES];
        x[3210] = f32::INFINITY;
        let error = all_reduce(&mut group, &x[..]).unwrap_err();
        let CollectiveError::NonFinite { rank: BAD, what: "tensor", index: 3210, .. } = error else {
            panic!("{error}")
        };
    });
    named(&errors, AT_ONCE);
    assert!(errors.iter().all(|(_, error, _)| error.to_string().contains("value 3210 of the tensor")));
}

#[test]
fn a_sum_that_overflows_is_an_error_of_its_owner() {
    let errors = on_each_rank(2, SETTINGS, |mut group| {
        let error = group.all_reduce(&codec("f32"), &[3e38; 10][..], &mut [0.0; 10]).unwrap_err();
        (group.rank(), error)
    });
    for (rank, error) in errors {
        assert!(error.to_string().contains(" of the sum of rank "), "{rank}: {error}");
    }
}

#[test]
fn buffers_of_another_length_are_refused() {
    let errors = on_each_rank(2, SETTINGS, |mut group| {
        group.all_reduce(&codec("f32"), &[1.0; 10][..], &mut [0.0; 9]).unwrap_err()
    });
    assert!(errors.iter().any(|error| error.to_string().contains("has 9 values, this call needs 10")));
}

#[test]
fn codecs_that_remember_samples_are_refused() {
    let errors = on_each_rank(2, SETTINGS, |mut group| {
        group.all_reduce(&codec("aqsgd"), &[1.0; 10][..], &mut [0.0; 10]).unwrap_err()
    });
    assert!(errors.iter().all(|error| error.to_string().contains("remembers samples")));
}

#[test]
fn a_group_has_from_two_to_sixty_four_ranks() {
    for ranks in [0, 1, 65] {
        let error = memory::group(ranks, &SETTINGS).unwrap_err();
        assert_eq!(error.to_string(), format!("a group has from 2 to 64 ranks, not {ranks}"));
    }
}
