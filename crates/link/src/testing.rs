//! What the tests of links share.

use std::{
    thread,
    time::{Duration, Instant},
};

use thinwire_codec::{CodecId, DType, Shape};

use crate::{
    deadline::Deadlines,
    error::LinkError,
    frame::FrameHeader,
    handshake::{Hello, Terms},
    kind::FrameKind,
    link::{FrameReceiver, FrameSender, Link, LinkConfig, WaitingFor},
    run_id::RunId,
};

pub(crate) const RUN: RunId = RunId([7; 16]);

/// Short, so that the tests that wait for a deadline take little; long enough for a busy machine.
pub(crate) const DEADLINES: Deadlines = Deadlines {
    connect: Duration::from_secs(5),
    handshake: Duration::from_millis(600),
    progress: Duration::from_millis(300),
};

/// How late a deadline may be noticed.
pub(crate) const SLACK: Duration = Duration::from_millis(400);

/// One of two stages that fit together.
pub(crate) fn config(stage: u32) -> LinkConfig {
    let mut terms = Terms::new();
    terms.add("model", "a5b1").unwrap();
    terms.add("layer map", "0-3|4-7").unwrap();
    let hello = Hello { run: RUN, stage, peer_stage: 1 - stage, stages: 2, terms };
    LinkConfig { hello, deadlines: DEADLINES, rate: None }
}

/// A stage that waits long enough for a peer that makes and checks much data on a busy machine.
pub(crate) fn patient_config(stage: u32) -> LinkConfig {
    LinkConfig { deadlines: Deadlines { progress: Duration::from_secs(20), ..DEADLINES }, ..config(stage) }
}

/// A stage whose layer map is `map`.
pub(crate) fn config_with_map(stage: u32, map: &str) -> LinkConfig {
    let mut config = config(stage);
    config.hello.terms = Terms::new();
    config.hello.terms.add("model", "a5b1").unwrap();
    config.hello.terms.add("layer map", map).unwrap();
    config
}

pub(crate) fn forward(micro_batch: u32, payload: &[u8]) -> FrameHeader {
    FrameHeader {
        run: RUN,
        step: 5,
        micro_batch,
        kind: FrameKind::Forward,
        dtype: DType::BF16,
        shape: Shape::new(2, 16, 64),
        codec: CodecId::Tah,
        tag: 99,
        payload_len: payload.len() as u64,
    }
}

pub(crate) fn waiting() -> WaitingFor {
    WaitingFor::new(FrameKind::Forward, 5, 2, 1 << 26)
}

/// Bytes without a pattern that a shift or a swap of blocks would keep.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// What `act` returns, and how long it took.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = act();
    (value, start.elapsed())
}

/// Asserts that an error text names all of `parts`.
pub(crate) fn assert_names(error: &LinkError, parts: &[&str]) {
    let text = full_text(error);
    for part in parts {
        assert!(text.contains(part), "{text:?} does not name {part:?}");
    }
}

/// The text of an error with those of its sources.
pub(crate) fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        text = format!("{text}: {}", full_text(source));
    }
    text
}

/// Sends large and small frames both ways at once, and checks each.
pub(crate) fn exercise_both_ways(first: Link, second: Link, sizes: &[usize]) {
    thread::scope(|scope| {
        for (link, seed) in [(first, 1), (second, 2)] {
            let Link { mut sender, mut receiver, counters, .. } = link;
            let sending = scope.spawn(move || send_all(&mut *sender, sizes, seed));
            let receiving = scope.spawn(move || receive_all(&mut *receiver, sizes, 3 - seed));
            scope.spawn(move || {
                sending.join().unwrap();
                receiving.join().unwrap();
                let (sent, received) = (counters.sent.traffic(), counters.received.traffic());
                assert_eq!(sent.data, received.data);
                assert_eq!(sent.data.frames, sizes.len() as u64);
                assert_eq!(sent.data.payload_bytes, sizes.iter().sum::<usize>() as u64);
                assert!(sent.wire_bytes > sent.data.payload_bytes);
            });
        }
    });
}

fn send_all(sender: &mut dyn FrameSender, sizes: &[usize], seed: u64) {
    for (index, &size) in sizes.iter().enumerate() {
        let payload = noise(size, seed * 1000 + index as u64);
        sender.send(&forward(index as u32, &payload), &payload).unwrap();
    }
    sender.close().unwrap();
}

fn receive_all(receiver: &mut dyn FrameReceiver, sizes: &[usize], seed: u64) {
    let mut payload = Vec::new();
    for (index, &size) in sizes.iter().enumerate() {
        let header = receiver.receive(&waiting(), &mut payload).unwrap();
        let expected = noise(size, seed * 1000 + index as u64);
        assert_eq!(header, forward(index as u32, &expected));
        assert!(payload == expected, "frame {index} of {size} bytes");
    }
    let error = receiver.receive(&waiting(), &mut payload).unwrap_err();
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
}
