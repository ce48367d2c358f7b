//! The two copies of a tied matrix are compared in every step, and what comes for them is checked.

use thinwire_link::{FrameHeader, FrameKind, Link};
use thinwire_train::pipeline::PipelineError;
use thinwire_train::run::Resume;

use super::engines::{Driven, Poke, drive};
use super::support::{Plan, config};
use super::tamper::{Fate, tampered};
use super::{assert_origin, stages};

/// Three steps of two stages; in front of step `step`, one value of the head's copy is changed.
fn driven(step: u64) -> Vec<Driven> {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(2, &["model.tie_embeddings=true"]));
    drive(&config, 3, &Poke { stage: 1, step, parameter: "lm_head.weight", range: 7..8, value: 0.125 })
}

#[test]
fn copies_that_differ_stop_the_run() {
    assert!(driven(4).iter().all(|stage| stage.error.is_none()));
    let stages = driven(2);
    let Some(error @ PipelineError::TiedDiffer { step: 1, .. }) = &stages[1].error else {
        panic!("{:?}", stages[1].error)
    };
    let told = stages[0].error.as_ref().unwrap().to_string();
    assert_eq!(told, format!("stage 1 in memory aborted: stage 1: {error}"));
}

/// Bytes of a share of 256 x 32 values: a header, a scale for each 64 of them, a byte for each.
const SHARE: usize = 4 + 2 * 128 + 8192;

/// The end-of-step message, whose last field is the share, with what `change` makes of the share and of its length.
fn with_share(payload: &[u8], change: impl Fn(&mut Vec<u8>) -> u64) -> Vec<u8> {
    let (rest, share) = payload.split_at(payload.len() - SHARE);
    let length = |length: u64| postcard::to_stdvec(&length).unwrap();
    let rest = rest.strip_suffix(&*length(SHARE as u64)).expect("the share's length is in front of it");
    let mut share = share.to_vec();
    let claimed = change(&mut share);
    [rest, &length(claimed), &share].concat()
}

/// Changes the share in step 2 from either of two stages to the other.
#[track_caller]
fn share_is_refused(
    change: impl Fn(&mut Vec<u8>) -> u64 + Copy + Send + 'static,
    says: impl Fn(usize) -> String,
) {
    for from in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let judge = move |header: &FrameHeader, payload: &[u8]| {
            if (header.kind, header.step, header.micro_batch) != (FrameKind::Control, 2, 1) {
                return Fate::Pass;
            }
            let payload = with_share(payload, change);
            Fate::Instead(FrameHeader { payload_len: payload.len() as u64, ..*header }, payload)
        };
        let wrap = |stage, link: Link| if stage == from { tampered(link, judge) } else { link };
        let settings = ["model.tie_embeddings=true", "pipeline.tied=fixed:bits=8,group=64"];
        let plan = Plan::new(&config(dir.path(), &stages(2, &settings)), Resume::Fresh);
        let (_, outcomes) = Plan { wrap: &wrap, ..plan }.run();
        assert_origin(&outcomes, 1 - from, &[&says(from)]);
    }
}

#[test]
fn a_share_of_another_length() {
    let says = |found: usize| {
        move |from: usize| {
            format!(
                "stage {from}'s share of the tied matrix's gradient in step 2 has {found} bytes, expected {SHARE}"
            )
        }
    };
    for length in [0, SHARE - 1, SHARE + 1, 100 * SHARE] {
        let change = move |share: &mut Vec<u8>| {
            share.resize(length, 0);
            length as u64
        };
        share_is_refused(change, says(length));
    }
}

#[test]
fn a_share_that_claims_more_than_came() {
    for claimed in [SHARE as u64 + 1, u64::from(u32::MAX), u64::MAX] {
        share_is_refused(
            move |_| claimed,
            |from| format!("the end of step 2 from stage {from} cannot be read"),
        );
    }
}

#[test]
fn a_share_that_does_not_decode() {
    let other_codec = |share: &mut Vec<u8>| {
        share[1] ^= 1;
        share.len() as u64
    };
    share_is_refused(other_codec, |from| format!("cannot decode the end of step 2 from stage {from}"));
}
