//! The side that connects.

use std::{
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    thread,
    time::Duration,
};

use crate::{
    deadline::Countdown,
    error::LinkError,
    key::{PublicKey, SecretKey},
    link::{Link, LinkConfig},
    tls,
};

use super::establish::{Keys, establish, linger};

/// The pause after a failed attempt, in the beginning and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Makes a link with the stage that listens at `address` (`host:port`) and holds the `pinned` key.
///
/// The peer may start later: until the connect deadline, attempts that find nobody are repeated. (What the system's
/// resolver takes for a host's name comes on top.) A peer with
/// another key or other terms is final, and so is an address that is none.
///
/// # Errors
/// [`LinkError::WrongKey`], [`LinkError::KeyRefused`], [`LinkError::Disagreement`], [`LinkError::Hello`],
/// [`LinkError::Frame`] (another protocol version), [`LinkError::Resolve`]; [`LinkError::Unreachable`] at the
/// deadline, with what the last attempt met.
pub fn connect(
    address: &str,
    identity: &SecretKey,
    pinned: &PublicKey,
    config: &LinkConfig,
) -> Result<Link, LinkError> {
    let countdown = Countdown::start(config.deadlines.connect);
    let keys = Keys { identity, pinned };
    let mut pause = FIRST_PAUSE;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match attempt(address, keys, config, countdown) {
            Ok(link) => return Ok(link),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => error,
        };
        if countdown.left() <= pause {
            return Err(LinkError::Unreachable {
                stage: config.hello.peer_stage,
                address: address.to_owned(),
                waited: countdown.elapsed(),
                attempts,
                source: Box::new(error),
            });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn attempt(
    address: &str,
    keys: Keys<'_>,
    config: &LinkConfig,
    countdown: Countdown,
) -> Result<Link, LinkError> {
    let (socket, address) = open(address, countdown)?;
    let handshake = Countdown::start(config.deadlines.handshake.min(countdown.left()));
    let spare = socket.try_clone().map_err(|source| LinkError::Connect { address, source })?;
    let tls = tls::client(keys.identity, keys.pinned);
    establish(socket, address, tls, keys, config, handshake).inspect_err(|error| {
        if error.is_final() {
            linger(spare, handshake);
        }
    })
}

/// Connects to the first of the addresses behind a name that answers.
fn open(address: &str, countdown: Countdown) -> Result<(TcpStream, SocketAddr), LinkError> {
    let unresolved = |source| LinkError::Resolve { address: address.to_owned(), source };
    let mut last = None;
    for address in address.to_socket_addrs().map_err(unresolved)? {
        // Zero is not a timeout.
        let limit = countdown.left().max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, limit) {
            Ok(socket) => return Ok((socket, address)),
            Err(source) => last = Some(LinkError::Connect { address, source }),
        }
    }
    Err(last.unwrap_or_else(|| unresolved(std::io::Error::other("the name has no addresses"))))
}
