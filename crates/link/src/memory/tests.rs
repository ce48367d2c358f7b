use std::{thread, time::Duration};

use super::*;
use crate::{
    error::Progress,
    frame::{Frame, FrameError, HEADER_LEN},
    kind::FrameKind,
    link::FrameReceiver,
    run_id::RunId,
    testing::{
        DEADLINES, RUN, SLACK, assert_names, config, config_with_map, exercise_both_ways, forward, noise,
        patient_config, timed, waiting,
    },
    throttle::Rate,
};

fn linked() -> (Link, Link) {
    pair(&config(0), &config(1)).unwrap()
}

/// A receiver, and the raw pipe that feeds it.
fn receiver_of_raw_bytes() -> (PipeWriter, FramedReceiver<MemorySource>) {
    let (out, input) = pipe(1 << 20);
    let counters = Arc::new(Counters::default());
    let source = MemorySource::new(input, Arc::clone(&counters));
    let patience = Patience::Idle(DEADLINES.progress);
    (out, FramedReceiver::new(source, Peer::in_memory(1), RUN, counters, patience))
}

fn write(out: &mut PipeWriter, bytes: &[u8]) {
    use crate::paced::RawWriter as _;
    if !bytes.is_empty() {
        assert_eq!(out.write_some(bytes, Patience::Idle(DEADLINES.progress)).unwrap(), bytes.len());
    }
}

fn frame_bytes(payload: &[u8]) -> Vec<u8> {
    Frame { header: forward(2, payload), payload }.to_bytes().unwrap()
}

#[test]
fn large_frames_pass_both_ways_at_once() {
    let (first, second) = pair(&patient_config(0), &patient_config(1)).unwrap();
    exercise_both_ways(first, second, &[0, 1, 100, 70_000, 3_000_000, 5, 1_048_577]);
}

#[test]
fn the_wire_bytes_are_the_frames() {
    let (mut first, mut second) = linked();
    let payload = noise(1000, 1);
    first.sender.send(&forward(2, &payload), &payload).unwrap();
    second.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    let expected = (HEADER_LEN + 1000) as u64;
    assert_eq!(first.counters.sent.traffic().wire_bytes, expected);
    assert_eq!(second.counters.received.traffic().wire_bytes, expected);
}

#[test]
fn two_ends_that_do_not_fit_are_refused() {
    let error = pair(&config(0), &config_with_map(1, "0-1|2-7")).err().unwrap();
    let expected = "layer map: stage 0 (here) has 0-3|4-7, stage 1 has 0-1|2-7";
    assert_names(&error, &[expected]);
}

#[test]
fn a_silent_peer_is_named_in_time_and_may_speak_later() {
    let (mut first, mut second) = linked();
    let mut payload = Vec::new();
    let (error, took) = timed(|| second.receiver.receive(&waiting(), &mut payload).unwrap_err());
    assert!(took >= DEADLINES.progress && took < DEADLINES.progress + SLACK, "{took:?}");
    assert_names(&error, &["stage 0", "silent for 0.", "forward of step 5, micro-batch 2", "0 bytes"]);

    first.sender.send(&forward(2, b"late"), b"late").unwrap();
    second.receiver.receive(&waiting(), &mut payload).unwrap();
    assert_eq!(payload, b"late");
}

#[test]
fn a_peer_silent_inside_a_frame_ends_the_link() {
    let (mut out, mut receiver) = receiver_of_raw_bytes();
    write(&mut out, &frame_bytes(b"payload")[..HEADER_LEN + 3]);
    let mut payload = Vec::new();
    let error = receiver.receive(&waiting(), &mut payload).unwrap_err();
    assert_names(&error, &["stage 1", "silent", "91 of 95 bytes"]);
    assert!(payload.is_empty());
    let error = receiver.receive(&waiting(), &mut payload).unwrap_err();
    assert!(matches!(error, LinkError::Unusable { .. }), "{error}");
}

#[test]
fn a_trickle_is_not_silence() {
    let (mut out, mut receiver) = receiver_of_raw_bytes();
    let bytes = frame_bytes(b"payload");
    let trickle = thread::spawn(move || {
        for part in bytes.chunks(20) {
            thread::sleep(DEADLINES.progress / 2);
            write(&mut out, part);
        }
        out
    });
    receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    trickle.join().unwrap();
}

#[test]
fn a_peer_that_stops_reading_is_named_in_time() {
    let (mut first, _second) = linked();
    let payload = vec![0; 2 * CAPACITY];
    let (error, took) = timed(|| first.sender.send(&forward(2, &payload), &payload).unwrap_err());
    assert!(took >= DEADLINES.progress && took < DEADLINES.progress + SLACK, "{took:?}");
    assert!(matches!(error, LinkError::StoppedReading { progress: Progress { done: 1.., of: Some(_) }, .. }));
    assert_names(&error, &["stage 1", "took nothing for 0.", "forward of step 5, micro-batch 2"]);
    let error = first.sender.send(&forward(3, b""), b"").unwrap_err();
    assert!(matches!(error, LinkError::Unusable { .. }), "{error}");
}

#[test]
fn an_end_and_a_cut_are_told_apart() {
    let (mut first, mut second) = linked();
    first.sender.close().unwrap();
    let error = second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
    second.receiver.wait_for_close().unwrap();

    let (first, mut second) = linked();
    drop(first);
    let error = second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, LinkError::Vanished { .. }), "{error}");
    let error = second.sender.send(&forward(2, b"x"), b"x").unwrap_err();
    assert!(matches!(error, LinkError::Broken { .. }), "{error}");
}

#[test]
fn a_peer_that_never_stops_is_not_waited_for() {
    let (mut first, mut second) = linked();
    let chatter = thread::spawn(move || while first.sender.send(&forward(2, b"more"), b"more").is_ok() {});
    let (error, took) = timed(|| second.receiver.wait_for_close().unwrap_err());
    assert!(matches!(error, LinkError::NotClosed { .. }), "{error}");
    assert_names(&error, &["stage 0", "after 0.", "deadline"]);
    assert!(took < DEADLINES.progress + SLACK, "{took:?}");
    drop(second);
    chatter.join().unwrap();
}

#[test]
fn an_abort_brings_its_reason_made_printable() {
    let (mut first, mut second) = linked();
    first.sender.abort(RUN, "disk full\x1b[2J\n").unwrap();
    let error = second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
    match &error {
        LinkError::PeerAborted { reason, .. } => assert_eq!(reason, "disk full\\u{1b}[2J\\n"),
        other => panic!("{other}"),
    }
    assert_names(&error, &["stage 0"]);
}

#[test]
fn a_long_reason_is_cut() {
    let (mut first, mut second) = linked();
    first.sender.abort(RUN, &"é".repeat(5000)).unwrap();
    match second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err() {
        LinkError::PeerAborted { reason, .. } => assert_eq!(reason, "é".repeat(512)),
        other => panic!("{other}"),
    }
}

#[test]
fn a_frame_of_another_run_is_refused() {
    let (mut first, mut second) = linked();
    let header = crate::FrameHeader { run: RunId([8; 16]), ..forward(2, b"x") };
    first.sender.send(&header, b"x").unwrap();
    let mut payload = Vec::new();
    let error = second.receiver.receive(&waiting(), &mut payload).unwrap_err();
    assert_names(&error, &["stage 0", &"07".repeat(16), &"08".repeat(16)]);
    assert!(payload.is_empty());
}

#[test]
fn a_length_beyond_the_limit_takes_no_memory() {
    for (kind, length, limit) in [
        (FrameKind::Forward, u64::MAX, 1 << 26),
        (FrameKind::Forward, (1 << 26) + 1, 1 << 26),
        (FrameKind::Abort, 1025, 1024),
    ] {
        let (mut out, mut receiver) = receiver_of_raw_bytes();
        let header = crate::FrameHeader { kind, payload_len: length, ..forward(2, b"") };
        let wire = crate::frame::WireHeader { header, payload_checksum: 0 };
        write(&mut out, &wire.encode());
        let mut payload = Vec::new();
        match receiver.receive(&waiting(), &mut payload).unwrap_err() {
            LinkError::Frame { source, .. } => {
                assert_eq!(source, FrameError::PayloadTooLong { length, limit });
            }
            other => panic!("{other}"),
        }
        assert_eq!(payload.capacity(), 0);
    }
}

/// A length within the limit, but no bytes: memory follows what comes.
#[test]
fn an_empty_promise_takes_little_memory() {
    let (mut out, mut receiver) = receiver_of_raw_bytes();
    let header = crate::FrameHeader { payload_len: 1 << 26, ..forward(2, b"") };
    write(&mut out, &crate::frame::WireHeader { header, payload_checksum: 0 }.encode());
    drop(out);
    let mut payload = Vec::new();
    receiver.receive(&waiting(), &mut payload).unwrap_err();
    assert!(payload.capacity() <= 1 << 20, "{}", payload.capacity());
}

#[test]
fn the_buffer_is_reused() {
    let (mut first, mut second) = linked();
    let mut payload = Vec::with_capacity(100_000);
    let memory = payload.as_ptr();
    for size in [100_000, 10, 0, 50_000, 100_000] {
        let bytes = noise(size, 3);
        first.sender.send(&forward(2, &bytes), &bytes).unwrap();
        second.receiver.receive(&waiting(), &mut payload).unwrap();
        assert!(payload == bytes);
        assert_eq!(payload.as_ptr(), memory);
    }
}

#[test]
fn every_truncation_of_a_frame_is_a_peer_that_vanished() {
    let bytes = frame_bytes(b"payload");
    for length in 0..bytes.len() {
        let (mut out, mut receiver) = receiver_of_raw_bytes();
        write(&mut out, &bytes[..length]);
        drop(out);
        match receiver.receive(&waiting(), &mut Vec::new()).unwrap_err() {
            LinkError::Vanished { progress, .. } => assert_eq!(progress.done, length as u64),
            other => panic!("{length}: {other}"),
        }
    }
}

#[test]
fn every_flipped_byte_of_a_frame_is_refused() {
    let bytes = frame_bytes(b"payload");
    for position in 0..bytes.len() {
        let (mut out, mut receiver) = receiver_of_raw_bytes();
        let mut damaged = bytes.clone();
        damaged[position] ^= 0xff;
        write(&mut out, &damaged);
        let error = receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
        assert!(matches!(error, LinkError::Frame { .. }), "{position}: {error}");
        assert_names(&error, &["stage 1", "forward of step 5, micro-batch 2"]);
    }
}

#[test]
fn a_header_that_does_not_fit_its_payload_leaves_the_link_usable() {
    let (mut first, mut second) = linked();
    let error = first.sender.send(&forward(2, b"x"), b"xyz").unwrap_err();
    assert!(matches!(error, LinkError::Frame { .. }), "{error}");
    first.sender.send(&forward(2, b"xyz"), b"xyz").unwrap();
    second.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
}

/// 125 kB at 2 Mbit/s take half a second, more than the progress deadline of either end.
#[test]
fn the_throttle_holds_the_rate_and_trips_no_deadline() {
    let slow = LinkConfig { rate: Rate::bits(2_000_000), ..config(0) };
    let (mut first, mut second) = pair(&slow, &config(1)).unwrap();
    let payload = vec![1; 125_000];
    let receive = thread::spawn(move || second.receiver.receive(&waiting(), &mut Vec::new()).map(|_| ()));
    let ((), took) = timed(|| first.sender.send(&forward(2, &payload), &payload).unwrap());
    receive.join().unwrap().unwrap();
    assert!(took >= Duration::from_millis(495), "{took:?}");
    let traffic = first.counters.sent.traffic();
    assert!(traffic.paced >= Duration::from_millis(100), "{traffic:?}");
}
