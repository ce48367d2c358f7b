//! A link of this machine to itself.

use std::thread;

use super::{Listener, connect};
use crate::{
    error::LinkError,
    key::SecretKey,
    link::{Link, LinkConfig},
};

/// Two ends joined over loopback, with keys made for them: as [`memory::pair`](crate::memory::pair), but through TCP and TLS.
///
/// # Errors
/// As [`connect`] and [`Listener::accept`]; [`LinkError::Bind`] where there is no loopback interface.
///
/// # Panics
/// When the system gives no thread.
pub fn pair(first: &LinkConfig, second: &LinkConfig) -> Result<(Link, Link), LinkError> {
    let keys = [SecretKey::generate(), SecretKey::generate()];
    let [of_first, of_second] = keys.each_ref().map(SecretKey::public);
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr().to_string();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept(&keys[1], &of_first, second));
        let connected = connect(&address, &keys[0], &of_second, first);
        let accepted = accepted.join().expect("a peer is let in or refused");
        Ok((connected?, accepted?))
    })
}
