use std::{sync::Arc, thread, time::Duration};

use super::*;
use crate::{
    counters::Counters,
    deadline::Patience,
    frame::{Frame, FrameError},
    memory::{MemorySink, MemorySource, PipeReader, PipeWriter, pipe},
    paced::{Paced, RawWriter as _},
    run_id::RunId,
    testing::{RUN, assert_names, config, config_with_map},
};

const PATIENCE: Patience = Patience::Idle(Duration::from_secs(5));

type Ends = (FramedSender<MemorySink>, FramedReceiver<MemorySource>);

fn end(peer_stage: u32, out: PipeWriter, input: PipeReader) -> Ends {
    let peer = Peer::in_memory(peer_stage);
    let counters = Arc::new(Counters::default());
    let sink = MemorySink::new(Paced::new(out, None, Arc::clone(&counters)));
    let source = MemorySource::new(input, Arc::clone(&counters));
    (
        FramedSender::new(sink, peer.clone(), Arc::clone(&counters), PATIENCE),
        FramedReceiver::new(source, peer, RUN, counters, PATIENCE),
    )
}

/// The outcome at stage 0 and at stage 1.
fn meet(first: &Hello, second: &Hello) -> [Result<(), LinkError>; 2] {
    let (to_second, from_first) = pipe(1 << 16);
    let (to_first, from_second) = pipe(1 << 16);
    let mut ends = [(0, first, to_second, from_second), (1, second, to_first, from_first)].map(
        |(stage, hello, out, input)| {
            let hello = hello.clone();
            Some(thread::spawn(move || {
                let (mut sender, mut receiver) = end(1 - stage, out, input);
                exchange(&mut sender, &mut receiver, &hello, &Peer::in_memory(1 - stage))
            }))
        },
    );
    [0, 1].map(|index: usize| ends[index].take().unwrap().join().unwrap())
}

/// What stage 0 says to a peer that sends `bytes` and no more.
fn meet_bytes(bytes: &[u8]) -> LinkError {
    let (to_second, _from_first) = pipe(1 << 16);
    let (mut to_first, from_second) = pipe(1 << 16);
    if !bytes.is_empty() {
        assert_eq!(to_first.write_some(bytes, PATIENCE).unwrap(), bytes.len());
    }
    drop(to_first);
    let (mut sender, mut receiver) = end(1, to_second, from_second);
    exchange(&mut sender, &mut receiver, &config(0).hello, &Peer::in_memory(1)).unwrap_err()
}

fn hello_frame(payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader::without_tensor(RUN, FrameKind::Hello, 0, 0, payload.len() as u64);
    Frame { header, payload }.to_bytes().unwrap()
}

#[test]
fn equal_terms_pass_in_any_order() {
    let first = config(0).hello;
    let mut second = config(1).hello;
    second.terms = Terms::new();
    second.terms.add("layer map", "0-3|4-7").unwrap();
    second.terms.add("model", "a5b1").unwrap();
    for outcome in meet(&first, &second) {
        outcome.unwrap();
    }
}

#[test]
fn every_difference_is_named_at_both_ends() {
    let mut first = config(0).hello;
    let mut second = config_with_map(1, "0-1|2-7").hello;
    first.terms.add("tokenizer", "bytes").unwrap();
    second.terms.add("codec", "tah").unwrap();
    second.stages = 3;
    second.run = RunId([9; 16]);
    let [at_first, at_second] = meet(&first, &second).map(Result::unwrap_err);
    for error in [&at_first, &at_second] {
        assert!(!error.to_string().contains("run: "), "a run is named after its terms: {error}");
    }
    assert_names(
        &at_first,
        &[
            "stage 1 in memory",
            "number of stages: stage 0 (here) has 2, stage 1 has 3",
            "layer map: stage 0 (here) has 0-3|4-7, stage 1 has 0-1|2-7",
            "tokenizer: stage 0 (here) has bytes, stage 1 has none",
            "codec: stage 0 (here) has none, stage 1 has tah",
        ],
    );
    assert_names(
        &at_second,
        &[
            "stage 0 in memory",
            "number of stages: stage 1 (here) has 3, stage 0 has 2",
            "layer map: stage 1 (here) has 0-1|2-7, stage 0 has 0-3|4-7",
            "tokenizer: stage 1 (here) has none, stage 0 has bytes",
            "codec: stage 1 (here) has tah, stage 0 has none",
        ],
    );
}

#[test]
fn another_run_with_equal_terms_is_named() {
    let mut second = config(1).hello;
    second.run = RunId([9; 16]);
    let (seven, nine) = ("07".repeat(16), "09".repeat(16));
    let [at_first, at_second] = meet(&config(0).hello, &second).map(Result::unwrap_err);
    assert_names(&at_first, &[&format!("run: stage 0 (here) has {seven}, stage 1 has {nine}")]);
    assert_names(&at_second, &[&format!("run: stage 1 (here) has {nine}, stage 0 has {seven}")]);
}

#[test]
fn a_stage_in_the_wrong_place_is_named_at_both_ends() {
    let first = config(0).hello;
    let second = Hello { stage: 2, ..config(1).hello };
    for outcome in meet(&first, &second) {
        assert!(matches!(outcome, Err(LinkError::Disagreement { .. })));
    }
}

#[test]
fn a_peers_values_are_made_printable() {
    let [at_first, _] = meet(&config(0).hello, &config_with_map(1, "\x1b[2J").hello);
    assert_names(&at_first.unwrap_err(), &["stage 1 has \\u{1b}[2J"]);
}

#[test]
fn another_version_is_named_whatever_follows_it() {
    let error = meet_bytes(b"TWFR\x09\x00and something quite different");
    assert_names(&error, &["stage 1", "protocol version 9, ours is 1"]);
    // Nothing need follow.
    assert_names(&meet_bytes(b"TWFR\x09\x00"), &["protocol version 9, ours is 1"]);
}

#[test]
fn every_truncation_and_every_flip_on_the_wire_is_refused() {
    let bytes = hello_frame(&config(1).hello.encode().unwrap());
    for length in 0..bytes.len() {
        let error = meet_bytes(&bytes[..length]);
        assert!(matches!(error, LinkError::Vanished { .. }), "{length}: {error}");
        assert_names(&error, &["stage 1", "hello"]);
    }
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            let error = meet_bytes(&damaged);
            assert!(matches!(error, LinkError::Frame { .. }), "{position}.{bit}: {error}");
        }
    }
}

/// The same under good checksums: a peer that makes its hellos badly.
#[test]
fn every_truncation_and_every_flip_of_the_payload_is_refused() {
    let payload = config(1).hello.encode().unwrap();
    for length in 0..payload.len() {
        let error = meet_bytes(&hello_frame(&payload[..length]));
        let truncated = matches!(
            error,
            LinkError::Hello { source: HelloError::Layout(FrameError::Truncated { .. }), .. }
        );
        assert!(truncated, "{length}: {error}");
    }
    let mut longer = payload.clone();
    longer.push(0);
    assert_names(&meet_bytes(&hello_frame(&longer)), &["1 bytes follow the end"]);
    for position in 0..payload.len() {
        for bit in 0..8 {
            let mut damaged = payload.clone();
            damaged[position] ^= 1 << bit;
            let error = meet_bytes(&hello_frame(&damaged));
            let refused = matches!(error, LinkError::Hello { .. } | LinkError::Disagreement { .. });
            assert!(refused, "{position}.{bit}: {error}");
        }
    }
}

#[test]
fn a_hello_comes_first() {
    let header = FrameHeader::without_tensor(RUN, FrameKind::Control, 0, 0, 0);
    let error = meet_bytes(&Frame { header, payload: b"" }.to_bytes().unwrap());
    assert_names(&error, &["stage 1", "a control frame came where hello was expected"]);
}

#[test]
fn terms_have_limits() {
    let mut terms = Terms::new();
    terms.add("map", "x".repeat(LONGEST_HELLO)).unwrap();
    assert_eq!(terms.add("map", "y"), Err(TermsError::Twice { name: "map".into() }));
    let hello = Hello { terms, ..config(0).hello };
    assert!(matches!(hello.encode(), Err(HelloError::TooLong { .. })));
}
