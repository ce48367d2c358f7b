//! Paths and peers that fail while frames pass.

use std::thread;

use super::{
    proxy::{Failure, proxy},
    *,
};
use crate::{
    HEADER_LEN, Progress,
    testing::{DEADLINES, SLACK, assert_names, forward, noise, timed, waiting},
};

const PAYLOAD: usize = 1_000_000;
const INTACT: usize = 300_000;

/// A link from stage 0 to stage 1 whose path fails inside the first frame.
fn linked_through(intact: usize, failure: Failure) -> [Result<Link, LinkError>; 2] {
    let keys = Keys::new();
    let (listener, address) = listener();
    let address = proxy(address, intact, failure).to_string();
    let (here, there) = (config(0), config(1));
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept(&keys.first, &keys.second.public(), &here));
        let connected = connect(&address, &keys.second, &keys.first.public(), &there);
        [accepted.join().unwrap(), connected]
    })
}

/// What the receiver of a frame says when the path fails inside it.
fn receive_through(failure: Failure) -> LinkError {
    let [first, second] = linked_through(INTACT, failure).map(Result::unwrap);
    let Link { mut sender, receiver: _receiver, .. } = first;
    let send = thread::spawn(move || {
        let payload = noise(PAYLOAD, 1);
        // Whether the sender notices depends on the buffers between the two.
        let _ = sender.send(&forward(2, &payload), &payload);
        thread::sleep(DEADLINES.progress + SLACK);
    });
    let Link { mut receiver, .. } = second;
    let mut payload = Vec::new();
    let (error, took) = timed(|| receiver.receive(&waiting(), &mut payload).unwrap_err());
    assert!(took < DEADLINES.progress + SLACK, "{took:?}");
    assert!(payload.is_empty());
    assert_names(&error, &["stage 0 at 127.0.0.1:", "forward of step 5, micro-batch 2"]);
    send.join().unwrap();
    error
}

fn assert_inside(progress: Progress) {
    assert_eq!(progress.of, Some((HEADER_LEN + PAYLOAD) as u64));
    assert!((250_000..INTACT as u64).contains(&progress.done), "{progress}");
}

#[test]
fn a_cut_inside_a_frame_says_how_much_had_come() {
    match receive_through(Failure::Cut) {
        LinkError::Vanished { progress, .. } => assert_inside(progress),
        other => panic!("{other}"),
    }
}

#[test]
fn silence_inside_a_frame_says_how_much_had_come() {
    match receive_through(Failure::Silence) {
        LinkError::Silent { progress, waited, .. } => {
            assert_inside(progress);
            assert!(waited >= DEADLINES.progress);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_flipped_bit_is_found_by_tls() {
    match receive_through(Failure::Flip) {
        LinkError::Tls { progress, source, .. } => {
            assert!((200_000..INTACT as u64).contains(&progress.done), "{progress}");
            assert_eq!(source, rustls::Error::DecryptError);
        }
        other => panic!("{other}"),
    }
}

/// A path that fails at any point of the handshake ends both sides in time, with an error.
#[test]
fn a_path_that_fails_in_the_handshake_is_refused() {
    thread::scope(|scope| {
        for failure in [Failure::Cut, Failure::Silence, Failure::Flip] {
            scope.spawn(move || {
                for intact in [0, 5, 100, 200, 400] {
                    meet_and_fail(intact, failure);
                }
            });
        }
    });
}

fn meet_and_fail(intact: usize, failure: Failure) {
    let (outcomes, took) = timed(|| {
        let keys = Keys::new();
        let (listener, address) = listener();
        let address = proxy(address, intact, failure).to_string();
        // Short, because the proxy takes one connection and `connect` goes on trying.
        let mut there = config(1);
        there.deadlines.connect = DEADLINES.progress;
        let here = LinkConfig { deadlines: there.deadlines, ..config(0) };
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(&keys.first, &keys.second.public(), &here));
            let connected = connect(&address, &keys.second, &keys.first.public(), &there);
            [accepted.join().unwrap().err(), connected.err()]
        })
    });
    let [first, second] = outcomes;
    let second = second.unwrap_or_else(|| panic!("{failure:?} after {intact}: connected"));
    assert_names(&second, &["127.0.0.1:"]);
    let first = first.unwrap_or_else(|| panic!("{failure:?} after {intact}: accepted"));
    assert_names(&first, &["stage 1", "did not come"]);
    assert!(took < DEADLINES.progress + SLACK * 2, "{failure:?} after {intact}: {took:?}");
}

#[test]
fn a_sender_notices_that_its_peer_is_gone() {
    let (mut first, second) = linked_plainly();
    drop(second);
    let payload = noise(64 << 20, 1);
    let (error, took) = timed(|| first.sender.send(&forward(2, &payload), &payload).unwrap_err());
    assert!(matches!(error, LinkError::Broken { .. }), "{error}");
    assert_names(&error, &["stage 1 at 127.0.0.1:", "forward of step 5, micro-batch 2"]);
    assert!(took < DEADLINES.progress + SLACK, "{took:?}");
}
