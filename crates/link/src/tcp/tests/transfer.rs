use std::{thread, time::Duration};

use super::*;
use crate::{
    FrameHeader, FrameKind, HEADER_LEN, Progress, Rate,
    testing::{
        DEADLINES, RUN, SLACK, assert_names, exercise_both_ways, forward, noise, patient_config, timed,
        waiting,
    },
};

#[test]
fn large_frames_pass_both_ways_at_once() {
    let (first, second) = linked(&patient_config(0), &patient_config(1));
    exercise_both_ways(first, second, &[0, 1, 100, 70_000, 30_000_000, 5, 1_048_577, 9_999_999]);
}

/// Every byte that one end counts as sent, handshake included, the other counts as received.
#[test]
fn both_ends_count_the_same_wire_bytes() {
    let (mut first, mut second) = linked_plainly();
    let payload = noise(100_000, 1);
    first.sender.send(&forward(2, &payload), &payload).unwrap();
    second.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    let (sent, received) = (first.counters.sent.traffic(), second.counters.received.traffic());
    assert_eq!(sent.wire_bytes, received.wire_bytes);
    assert_eq!(sent.data, received.data);
    assert_eq!(sent.control, received.control);
    // 22 bytes a record of 16 KiB, and what the handshake took.
    assert!(sent.wire_bytes > (HEADER_LEN + 100_000 + 7 * 22) as u64);
    assert!(sent.wire_bytes < 103_000, "{sent:?}");
}

#[test]
fn a_silent_peer_is_named_in_time_and_may_speak_later() {
    let (mut first, mut second) = linked_plainly();
    let mut payload = Vec::new();
    let (error, took) = timed(|| second.receiver.receive(&waiting(), &mut payload).unwrap_err());
    assert!(took >= DEADLINES.progress && took < DEADLINES.progress + SLACK, "{took:?}");
    assert_names(
        &error,
        &[
            "stage 0 at 127.0.0.1:",
            "ed25519:",
            "silent for 0.",
            "forward of step 5, micro-batch 2",
            "0 bytes",
        ],
    );
    first.sender.send(&forward(2, b"late"), b"late").unwrap();
    second.receiver.receive(&waiting(), &mut payload).unwrap();
    assert_eq!(payload, b"late");
}

#[test]
fn a_peer_that_stops_reading_is_named_in_time() {
    let (mut first, _second) = linked_plainly();
    // More than the system's socket buffers hold.
    let payload = vec![0; 64 << 20];
    let (error, took) = timed(|| first.sender.send(&forward(2, &payload), &payload).unwrap_err());
    assert!(took >= DEADLINES.progress && took < DEADLINES.progress * 2 + SLACK, "{took:?}");
    assert!(matches!(error, LinkError::StoppedReading { progress: Progress { done: 1.., of: Some(_) }, .. }));
    assert_names(
        &error,
        &["stage 1 at 127.0.0.1:", "took nothing for 0.", "forward of step 5, micro-batch 2"],
    );
}

#[test]
fn a_goodbye_ends_a_link_in_order() {
    let (mut first, mut second) = linked_plainly();
    first.sender.close().unwrap();
    let error = second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
    // The other direction goes on.
    second.sender.send(&forward(2, b"still"), b"still").unwrap();
    first.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    second.sender.close().unwrap();
    first.receiver.wait_for_close().unwrap();
}

#[test]
fn an_abort_arrives_though_its_sender_left_bytes_unread() {
    let (mut first, mut second) = linked_plainly();
    for micro_batch in 0..20 {
        let payload = noise(10_000, 1);
        second.sender.send(&forward(micro_batch, &payload), &payload).unwrap();
    }
    let leave = thread::spawn(move || {
        first.sender.abort(RUN, "NaN in layer 3").unwrap();
        first.sender.close().unwrap();
        first.receiver.wait_for_close().unwrap();
    });
    let error = second.receiver.receive(&waiting(), &mut Vec::new()).unwrap_err();
    assert_names(&error, &["stage 0 at 127.0.0.1:", "aborted: NaN in layer 3"]);
    second.sender.close().unwrap();
    leave.join().unwrap();
}

#[test]
fn control_frames_carry_any_bytes() {
    let (mut first, mut second) = linked_plainly();
    let bytes = noise(5000, 4);
    let header = FrameHeader::without_tensor(RUN, FrameKind::Control, 5, 0, 5000);
    first.sender.send(&header, &bytes).unwrap();
    let mut payload = Vec::new();
    assert_eq!(second.receiver.receive(&waiting(), &mut payload).unwrap(), header);
    assert_eq!(payload, bytes);
    // Hello and consent are control frames too.
    assert_eq!(second.counters.received.traffic().control.frames, 3);
}

/// 250 kB at 4 Mbit/s take half a second, more than the progress deadline of either end.
#[test]
fn the_throttle_holds_the_rate_and_trips_no_deadline() {
    let slow = LinkConfig { rate: Rate::bits(4_000_000), ..config(0) };
    let (mut first, mut second) = linked(&slow, &config(1));
    let payload = noise(250_000, 1);
    let receive = thread::spawn(move || second.receiver.receive(&waiting(), &mut Vec::new()).map(|_| ()));
    let ((), took) = timed(|| first.sender.send(&forward(2, &payload), &payload).unwrap());
    receive.join().unwrap().unwrap();
    assert!(took >= Duration::from_millis(495), "{took:?}");
    let traffic = first.counters.sent.traffic();
    assert!(traffic.paced >= Duration::from_millis(100), "{traffic:?}");
}
