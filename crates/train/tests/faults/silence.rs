//! Stages that vanish, fall silent, or stop reading.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use thinwire_link::{FrameKind, Link, LinkError, Progress, WaitingFor, memory};
use thinwire_train::config::Config;
use thinwire_train::run::{Links, Resume, Setup, Stop, train};

use super::support::{Plan, config};
use super::tamper::{Fate, tampered};
use super::{stages, text};

/// From step 2 on, all that stage `stage` of `config` sends meets this fate.
fn run_with_fate(config: &Config, stage: usize, fate: fn() -> Fate) -> Vec<String> {
    let met = Arc::new(AtomicBool::new(false));
    let wrap = |owner, link: Link| {
        if owner != stage {
            return link;
        }
        let met = met.clone();
        tampered(link, move |header, _| {
            if header.step == 2 {
                met.store(true, Relaxed);
            }
            if met.load(Relaxed) { fate() } else { Fate::Pass }
        })
    };
    let (_, outcomes) = Plan { wrap: &wrap, ..Plan::new(config, Resume::Fresh) }.run();
    outcomes.into_iter().map(|outcome| text(&outcome.unwrap_err())).collect()
}

#[test]
fn a_stage_that_is_stopped_is_blamed_by_all_within_their_deadlines() {
    for mute in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let config = config(dir.path(), &stages(4, &["pipeline.deadline_seconds=1.2"]));
        let said = run_with_fate(&config, mute, || Fate::Mute);
        // A deadline grows by a quarter for each stage behind the neighbour; training is a matter of milliseconds.
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        for (stage, error) in said.iter().enumerate().filter(|(stage, _)| *stage != mute) {
            let blame = format!("stage {mute} sent nothing for ");
            assert!(error.contains(&blame) && error.contains("of step 2"), "stage {stage} says {error:?}");
        }
    }
}

#[test]
fn a_stage_that_is_killed_is_blamed_by_all_at_once() {
    for gone in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let said =
            run_with_fate(&config(dir.path(), &stages(3, &["pipeline.deadline_seconds=60"])), gone, || {
                Fate::Vanish
            });
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        for (stage, error) in said.iter().enumerate().filter(|(stage, _)| *stage != gone) {
            let blame = format!("stage {gone} in memory vanished");
            assert!(error.contains(&blame), "stage {stage} says {error:?}");
        }
    }
}

/// Stage 0 of two, its neighbour played by `play`; what stage 0 says in the end.
fn opposite(overrides: &[&str], play: impl FnOnce(Link) + Send) -> String {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup::load(config(dir.path(), &stages(2, overrides))).unwrap();
    let config = |from, to| setup.link_config(from, to, false).unwrap();
    let (ours, theirs) = memory::pair(&config(0, 1), &config(1, 0)).unwrap();
    let links = Links { previous: None, next: Some(ours) };
    thread::scope(|scope| {
        scope.spawn(move || play(theirs));
        text(&train(setup, 0, links, Resume::Fresh, &Stop::default(), &mut |_| Ok(())).unwrap_err())
    })
}

#[test]
fn a_peer_that_reads_but_never_answers() {
    let said = opposite(&["pipeline.deadline_seconds=0.5"], |mut link| {
        let waiting_for = WaitingFor::new(FrameKind::Forward, 1, 0, 1 << 20);
        let mut payload = Vec::new();
        for micro_batch in 0..2 {
            // 1F1B: stage 0 of two is two micro-batches ahead.
            let header = link.receiver.receive(&waiting_for, &mut payload).unwrap();
            assert_eq!((header.kind, header.step, header.micro_batch), (FrameKind::Forward, 1, micro_batch));
        }
        let error = loop {
            match link.receiver.receive(&waiting_for, &mut payload) {
                Err(LinkError::Silent { .. }) => {}
                other => break other.unwrap_err(),
            }
        };
        let told = "aborted: stage 0: stage 1 sent nothing for 0.5 s while the gradient of step 1, micro-batch 0 was awaited";
        assert!(error.to_string().ends_with(told), "{error}");
    });
    assert_eq!(
        said,
        "stage 1 sent nothing for 0.5 s while the gradient of step 1, micro-batch 0 was awaited"
    );
}

#[test]
fn a_peer_that_does_not_read() {
    // Two activations of 160 kB are more than the link holds.
    let said = opposite(&["pipeline.deadline_seconds=0.5", "train.micro_batch=40"], |link| {
        thread::sleep(Duration::from_secs(4));
        drop(link);
    });
    // Stage 0 waits for the answer as long as its sender waits for room; either may notice first.
    let stopped = "stage 1 in memory took nothing for 0.5 s while forward of step 1, micro-batch 1 was sent";
    let silent = "stage 1 sent nothing for 0.5 s while the gradient of step 1, micro-batch 0 was awaited";
    assert!(said.starts_with(stopped) || said == silent, "{said}");
}

/// A stage between one that floods it and one that takes nothing: its queues are all full when its sender fails.
#[test]
fn a_failure_is_heard_by_a_stage_whose_queues_are_full() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ["data.heldout=train.txt", "eval.micro_batch=1", "eval.every=1"];
    let wrap = |stage, link: Link| {
        let peer = link.peer.clone();
        if (stage, peer.stage()) != (1, 2) {
            return link;
        }
        tampered(link, move |header, _| {
            if (header.kind, header.micro_batch) != (FrameKind::EvalForward, 1) {
                return Fate::Pass;
            }
            let waited = Duration::from_secs(1);
            thread::sleep(waited);
            let progress = Progress { done: 0, of: None };
            Fate::Fail(LinkError::StoppedReading {
                peer: peer.clone(),
                frame: header.name(),
                waited,
                progress,
            })
        })
    };
    let plan = Plan::new(&config(dir.path(), &stages(3, &settings)), Resume::Fresh);
    let (_, outcomes) = Plan { wrap: &wrap, ..plan }.run();
    let said = text(outcomes[1].as_ref().unwrap_err());
    assert!(
        said.starts_with("stage 2 in memory took nothing for 1.0 s while eval-forward of step 1"),
        "{said}"
    );
    assert!(outcomes.iter().all(Result::is_err));
}
