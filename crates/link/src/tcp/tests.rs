//! Only on the loopback, on ports the system picks.

mod faults;
mod handshake;
mod proxy;
mod refusals;
mod transfer;

use std::{net::SocketAddr, thread};

use crate::{
    error::LinkError,
    key::{PublicKey, SecretKey},
    link::{Link, LinkConfig},
    testing::config,
};

use super::{Listener, connect};

/// The keys of stage 0, which listens, and of stage 1.
struct Keys {
    first: SecretKey,
    second: SecretKey,
}

impl Keys {
    fn new() -> Self {
        Self { first: SecretKey::generate(), second: SecretKey::generate() }
    }
}

fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr();
    (listener, address)
}

/// What both ends make of each other when stage 0 pins `first_pins` and stage 1 pins `second_pins`.
fn meet(
    keys: &Keys,
    first: &LinkConfig,
    first_pins: &PublicKey,
    second: &LinkConfig,
    second_pins: &PublicKey,
) -> [Result<Link, LinkError>; 2] {
    let (listener, address) = listener();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept(&keys.first, first_pins, first));
        let connected = connect(&address.to_string(), &keys.second, second_pins, second);
        [accepted.join().unwrap(), connected]
    })
}

/// A link between two ends that trust each other.
fn linked(first: &LinkConfig, second: &LinkConfig) -> (Link, Link) {
    super::pair(first, second).unwrap()
}

fn linked_plainly() -> (Link, Link) {
    linked(&config(0), &config(1))
}
