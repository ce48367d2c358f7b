//! Strangers at the port, and ports with nobody behind.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use super::*;
use crate::testing::{DEADLINES, SLACK, assert_names, config, forward, noise, timed, waiting};

/// Whatever strangers do first, the right peer gets in, and soon.
fn accept_after(strangers: impl FnOnce(SocketAddr) -> Vec<TcpStream>) {
    let keys = Keys::new();
    let (listener, address) = listener();
    let (here, there) = (config(0), config(1));
    let strangers = strangers(address);
    let (links, took) = timed(|| {
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(&keys.first, &keys.second.public(), &here));
            let connected = connect(&address.to_string(), &keys.second, &keys.first.public(), &there);
            [accepted.join().unwrap(), connected]
        })
    });
    let [mut first, mut second] = links.map(Result::unwrap);
    assert!(took < DEADLINES.handshake + SLACK, "{took:?}");
    first.sender.send(&forward(2, b"hi"), b"hi").unwrap();
    second.receiver.receive(&waiting(), &mut Vec::new()).unwrap();
    drop(strangers);
}

#[test]
fn garbage_does_not_keep_the_peer_out() {
    accept_after(|address| {
        let mut strangers: Vec<_> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        strangers[0].write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        strangers[1].write_all(&noise(100_000, 1)).unwrap();
        strangers[2].write_all(b"TWFR\x01\x00").unwrap();
        // A TLS record that promises more than ever comes.
        strangers[3].write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252]).unwrap();
        strangers[4].shutdown(std::net::Shutdown::Both).unwrap();
        strangers
    });
}

#[test]
fn silent_connections_do_not_keep_the_peer_out() {
    for strangers in [1, 10, 100] {
        accept_after(|address| (0..strangers).map(|_| TcpStream::connect(address).unwrap()).collect());
    }
}

/// More than may be silent at once, and more than the system's queue holds.
#[test]
fn any_number_of_silent_connections_do_not_keep_the_peer_out() {
    let keys = Keys::new();
    let (listener, address) = listener();
    let (here, there) = (config(0), config(1));
    let links = thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept(&keys.first, &keys.second.public(), &here));
        let strangers: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        let connected = connect(&address.to_string(), &keys.second, &keys.first.public(), &there);
        drop(strangers);
        [accepted.join().unwrap(), connected]
    });
    drop(links.map(Result::unwrap));
}

#[test]
fn nobody_is_named_in_time() {
    let keys = Keys::new();
    let (listener, address) = listener();
    let mut here = config(0);
    here.deadlines.connect = Duration::from_millis(300);
    let accept = || listener.accept(&keys.first, &keys.second.public(), &here).err().unwrap();
    let (error, took) = timed(accept);
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(300) + SLACK, "{took:?}");
    let named = [&address.to_string(), &keys.second.public().to_string(), "stage 1", "within 0."];
    assert_names(&error, &named);
}

#[test]
fn the_last_refusal_is_named() {
    let keys = Keys::new();
    let (listener, address) = listener();
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut here = config(0);
    here.deadlines.connect = Duration::from_millis(300);
    let error = listener.accept(&keys.first, &keys.second.public(), &here).err().unwrap();
    assert_names(&error, &["did not come", &stranger.local_addr().unwrap().to_string(), "TLS handshake"]);
    // The stranger was told, and let go.
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).unwrap();
}

#[test]
fn a_port_in_use_is_named() {
    let (_listener, address) = listener();
    let error = Listener::bind(&address.to_string()).unwrap_err();
    assert!(matches!(error, LinkError::Bind { .. }));
    assert_names(&error, &[&format!("cannot listen on {address}"), "in use"]);
}

#[test]
fn an_address_without_a_meaning_is_named() {
    let keys = Keys::new();
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999"] {
        let error = connect(address, &keys.first, &keys.second.public(), &config(0)).err().unwrap();
        assert!(matches!(error, LinkError::Resolve { .. }), "{error}");
        assert_names(&error, &[address]);
        assert_names(&Listener::bind(address).unwrap_err(), &[address]);
    }
}

#[test]
fn a_port_with_nobody_behind_is_named_in_time() {
    let keys = Keys::new();
    let (spare, address) = listener();
    drop(spare);
    let mut here = config(0);
    here.deadlines.connect = Duration::from_millis(300);
    let (error, took) =
        timed(|| connect(&address.to_string(), &keys.first, &keys.second.public(), &here).err().unwrap());
    assert!(took <= Duration::from_millis(300) + SLACK, "{took:?}");
    assert_names(&error, &["stage 1", &address.to_string(), "attempts", "refused"]);
}
