//! Two honest ends that meet, or do not fit.

use std::time::Duration;

use super::*;
use crate::testing::{DEADLINES, SLACK, assert_names, config_with_map, forward, timed, waiting};

#[test]
fn a_peer_knows_who_is_there() {
    let (first, second) = linked_plainly();
    assert_eq!((first.peer.stage(), second.peer.stage()), (1, 0));
    assert!(first.peer.key().is_some());
    assert!(first.peer.to_string().starts_with("stage 1 at 127.0.0.1:"), "{}", first.peer);
}

#[test]
fn the_one_that_connects_may_start_first() {
    let keys = Keys::new();
    let (spare, address) = listener();
    drop(spare);
    let (here, there) = (config(0), config(1));
    thread::scope(|scope| {
        let connected =
            scope.spawn(|| connect(&address.to_string(), &keys.second, &keys.first.public(), &there));
        thread::sleep(Duration::from_millis(150));
        let listener = Listener::bind(&address.to_string()).unwrap();
        let mut first = listener.accept(&keys.first, &keys.second.public(), &here).unwrap();
        let mut second = connected.join().unwrap().unwrap();
        second.sender.send(&forward(2, b"hi"), b"hi").unwrap();
        first.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    });
}

/// A stage that is bound but busy takes connections only later than the handshake's deadline.
#[test]
fn a_busy_listener_is_tried_again() {
    let keys = Keys::new();
    let (listener, address) = listener();
    let (here, there) = (config(0), config(1));
    thread::scope(|scope| {
        let connected =
            scope.spawn(|| connect(&address.to_string(), &keys.second, &keys.first.public(), &there));
        thread::sleep(DEADLINES.handshake + Duration::from_millis(200));
        let mut first = listener.accept(&keys.first, &keys.second.public(), &here).unwrap();
        let mut second = connected.join().unwrap().unwrap();
        first.sender.send(&forward(2, b"hi"), b"hi").unwrap();
        second.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    });
}

#[test]
fn other_terms_are_named_at_both_ends() {
    let keys = Keys::new();
    let (first, second) = (config(0), config_with_map(1, "0-1|2-7"));
    let outcomes = meet(&keys, &first, &keys.second.public(), &second, &keys.first.public());
    let [at_first, at_second] = outcomes.map(|outcome| outcome.err().unwrap());
    assert_names(
        &at_first,
        &["stage 1 at 127.0.0.1:", "layer map: stage 0 (here) has 0-3|4-7, stage 1 has 0-1|2-7"],
    );
    assert_names(
        &at_second,
        &["stage 0 at 127.0.0.1:", "layer map: stage 1 (here) has 0-1|2-7, stage 0 has 0-3|4-7"],
    );
}

#[test]
fn a_wrong_key_of_the_listener_is_final() {
    let keys = Keys::new();
    let other = SecretKey::generate().public();
    let mut first = config(0);
    first.deadlines.connect = Duration::from_millis(500);
    let (outcomes, took) = timed(|| meet(&keys, &first, &keys.second.public(), &config(1), &other));
    let [at_first, at_second] = outcomes.map(|outcome| outcome.err().unwrap());
    assert!(matches!(at_second, LinkError::WrongKey { .. }), "{at_second}");
    assert_names(&at_second, &["127.0.0.1:", &keys.first.public().to_string(), &other.to_string()]);
    // The listener goes on, and says at its deadline whom it turned away.
    assert_names(&at_first, &["did not come", "refuses our key", &keys.first.public().to_string()]);
    assert!(took < Duration::from_millis(500) + SLACK, "{took:?}");
}

#[test]
fn a_wrong_key_of_the_one_that_connects_is_final_for_it() {
    let keys = Keys::new();
    let other = SecretKey::generate().public();
    let mut first = config(0);
    first.deadlines.connect = Duration::from_millis(500);
    let outcomes = meet(&keys, &first, &other, &config(1), &keys.first.public());
    let [at_first, at_second] = outcomes.map(|outcome| outcome.err().unwrap());
    assert!(matches!(at_second, LinkError::KeyRefused { .. }), "{at_second}");
    assert_names(&at_second, &["127.0.0.1:", "refuses our key", &keys.second.public().to_string()]);
    assert!(matches!(at_first, LinkError::NobodyCame { .. }), "{at_first}");
    assert_names(&at_first, &[&other.to_string(), &keys.second.public().to_string()]);
}
