//! Frames that are whole, but not the ones that are owed.

use thinwire_codec::{CodecId, DType, Shape};
use thinwire_link::{FrameHeader, FrameKind, Link};
use thinwire_train::run::Resume;

use super::support::{Plan, config};
use super::tamper::{Fate, all, tampered};
use super::{assert_origin, stages};

/// Changes the activation of step 2, micro-batch 1 on its way from stage 0 to stage 1 of three.
#[track_caller]
fn stage_1_refuses(change: impl Fn(FrameHeader, &[u8]) -> Fate + Copy + Send + 'static, says: &str) {
    let dir = tempfile::tempdir().unwrap();
    let judge = move |header: &FrameHeader, payload: &[u8]| {
        let here = (header.kind, header.step, header.micro_batch) == (FrameKind::Forward, 2, 1);
        if here { change(*header, payload) } else { Fate::Pass }
    };
    let wrap = |stage, link: Link| if stage == 0 { tampered(link, judge) } else { link };
    let plan = Plan::new(&config(dir.path(), &stages(3, &[])), Resume::Fresh);
    let (_, outcomes) = Plan { wrap: &wrap, ..plan }.run();
    let error = assert_origin(&outcomes, 1, &[]);
    assert!(error.starts_with(says), "{error:?} is not {says:?}");
}

const FRAME: &str = "the activation of step 2, micro-batch 1 from stage 0";

#[test]
fn of_other_samples() {
    stage_1_refuses(
        |header, payload| Fate::Instead(FrameHeader { tag: header.tag ^ 1, ..header }, payload.to_vec()),
        &format!("{FRAME}: the fingerprint of the samples is "),
    );
}

#[test]
fn of_another_shape() {
    // [3, 32, 32] is right, and the most that the stage takes.
    stage_1_refuses(
        |header, _| all(0.0, &header, Shape::new(2, 32, 32)),
        &format!("{FRAME}: samples x tokens is [2, 32], expected [3, 32]"),
    );
    stage_1_refuses(
        |header, _| all(0.0, &header, Shape::new(3, 32, 31)),
        &format!("{FRAME}: the number of channels is 31, expected 32"),
    );
    stage_1_refuses(
        |header, _| all(0.0, &header, Shape::new(99, 32, 32)),
        &format!("{FRAME}: the shape is "),
    );
}

#[test]
fn of_another_codec_or_dtype() {
    stage_1_refuses(
        |header, payload| Fate::Instead(FrameHeader { codec: CodecId::Tah, ..header }, payload.to_vec()),
        &format!("{FRAME}: the codec is tah"),
    );
    stage_1_refuses(
        |header, payload| Fate::Instead(FrameHeader { dtype: DType::F16, ..header }, payload.to_vec()),
        &format!("{FRAME}: the dtype is "),
    );
}

#[test]
fn of_a_payload_that_does_not_decode() {
    stage_1_refuses(
        |header, payload| {
            let payload = payload[4..].to_vec();
            Fate::Instead(FrameHeader { payload_len: payload.len() as u64, ..header }, payload)
        },
        "cannot decode the activation of step 2, micro-batch 1 from stage 0",
    );
}

#[test]
fn of_another_step() {
    stage_1_refuses(
        |header, payload| Fate::Instead(FrameHeader { step: 1, ..header }, payload.to_vec()),
        "stage 0 sent the activation of step 1, micro-batch 1 in step 2, where it is not expected",
    );
}

#[test]
fn sent_twice() {
    stage_1_refuses(
        |header, payload| Fate::AndThen(header, payload.to_vec()),
        "stage 0 sent the activation of step 2, micro-batch 1 in step 2, where it is not expected",
    );
}

#[test]
fn that_nobody_asks_for() {
    stage_1_refuses(
        |header, payload| Fate::AndThen(FrameHeader { micro_batch: 77, ..header }, payload.to_vec()),
        "stage 0 sent the activation of step 2, micro-batch 77 in step 2, where it is not expected",
    );
    let run_id = |header: FrameHeader| FrameHeader::without_tensor(header.run, FrameKind::Control, 2, 9, 0);
    stage_1_refuses(
        move |header, _| Fate::AndThen(run_id(header), Vec::new()),
        "stage 0 sent a message of unknown topic 9 in step 2 in step 2, where it is not expected",
    );
}

#[test]
fn from_the_wrong_side() {
    stage_1_refuses(
        |header, payload| {
            Fate::Instead(FrameHeader { kind: FrameKind::Backward, ..header }, payload.to_vec())
        },
        "the gradient of step 2, micro-batch 1 from stage 0: the direction is backward, expected forward",
    );
    stage_1_refuses(
        |header, payload| {
            let poisoned = FrameHeader::without_tensor(header.run, FrameKind::PoisonedBackward, 2, 1, 0);
            let _ = payload;
            Fate::Instead(poisoned, Vec::new())
        },
        "the gradient of step 2, micro-batch 1 from stage 0: the direction is poisoned-backward, expected forward",
    );
}
