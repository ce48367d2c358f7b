//! A path between two ends that fails in the middle.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
};

/// What happens to the bytes from the listener to the one that connects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The path ends.
    Cut,
    /// Nothing arrives any more.
    Silence,
    /// One bit is flipped, once.
    Flip,
}

/// Forwards one connection to `target` and fails after `intact` bytes from there. Its threads end with the
/// connection.
pub(super) fn proxy(target: SocketAddr, intact: usize, failure: Failure) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(target).unwrap();
        let (near_in, far_out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || forward(near_in, far_out, usize::MAX, failure));
        forward(far, near, intact, failure);
    });
    address
}

fn forward(mut from: TcpStream, mut to: TcpStream, mut intact: usize, failure: Failure) {
    let mut buffer = [0; 4096];
    // Either end may be gone at any time; that is what is tested.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        let fails = intact < count;
        match failure {
            _ if !fails => intact -= count,
            Failure::Flip => {
                bytes[intact] ^= 1;
                intact = usize::MAX;
            }
            Failure::Cut => {
                let _ = to.write_all(&bytes[..intact]);
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
            Failure::Silence => {
                let _ = to.write_all(&bytes[..intact]);
                intact = 0;
                continue;
            }
        }
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
