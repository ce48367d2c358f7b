use std::{io::IoSlice, sync::Arc, thread, time::Duration};

use rustls::{Connection, ProtocolVersion};

use super::{stream::lock, *};
use crate::{
    counters::Counters,
    deadline::Patience,
    key::SecretKey,
    memory::{PipeReader, PipeWriter, pipe},
    paced::Paced,
    testing::noise,
    transport::{Fault, Sink, Source},
};

const PATIENCE: Patience = Patience::Idle(Duration::from_secs(5));

/// Smaller than what is sent, so that writers have to wait for readers.
const CAPACITY: usize = 32 * 1024;

impl RawReader for PipeReader {
    fn read_some(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        match PipeReader::read_some(self, buffer, patience) {
            // A socket says the end this way.
            Err(Fault::Closed) => Ok(0),
            outcome => outcome,
        }
    }
}

/// Both ends of a connection after its handshake.
fn connections() -> [Connection; 2] {
    let (here, there) = (SecretKey::generate(), SecretKey::generate());
    let mut server = server(&here, &there.public()).unwrap();
    let mut client = client(&there, &here.public()).unwrap();
    while server.is_handshaking() || client.is_handshaking() {
        pass(&mut client, &mut server);
        pass(&mut server, &mut client);
    }
    assert_eq!(server.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(server.peer_certificates().unwrap()[0].as_ref(), there.public().to_spki());
    assert_eq!(client.peer_certificates().unwrap()[0].as_ref(), here.public().to_spki());
    [server, client]
}

fn pass(from: &mut Connection, to: &mut Connection) {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut bytes = &bytes[..];
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        to.process_new_packets().unwrap();
    }
}

/// Both ends, split, over small pipes.
fn halves() -> [(TlsSink<PipeWriter>, TlsSource<PipeReader>); 2] {
    let (to_second, from_first) = pipe(CAPACITY);
    let (to_first, from_second) = pipe(CAPACITY);
    let [first, second] = connections();
    let paced = |out| Paced::new(out, None, Arc::new(Counters::default()));
    [split(first, from_second, paced(to_second)), split(second, from_first, paced(to_first))]
}

fn send_with_new_keys(sink: &mut TlsSink<PipeWriter>, message: &[u8]) {
    for (index, mut rest) in message.chunks(100_000).enumerate() {
        // Each update asks the peer for one of its own: its receiver's answer leaves with its sender's next bytes.
        if index % 3 == 0 {
            lock(&sink.tls).refresh_traffic_keys().unwrap();
        }
        while !rest.is_empty() {
            let sent = sink.write(&[IoSlice::new(rest)], PATIENCE).unwrap();
            rest = &rest[sent..];
        }
    }
    sink.close(PATIENCE).unwrap();
}

fn receive_to_the_end(source: &mut TlsSource<PipeReader>) -> Vec<u8> {
    let mut message = Vec::new();
    let mut buffer = vec![0; 10_007];
    loop {
        match source.read(&mut buffer, PATIENCE) {
            Ok(count) => message.extend_from_slice(&buffer[..count]),
            Err(Fault::Closed) => return message,
            Err(fault) => panic!("{fault:?} after {} bytes", message.len()),
        }
    }
}

/// Full duplex through small buffers, both ends changing keys all the time: nothing is lost, reordered or stuck.
#[test]
fn nothing_is_lost_while_keys_change_both_ways() {
    let messages = [noise(5_000_000, 1), noise(5_000_000, 2)];
    thread::scope(|scope| {
        for (index, (mut sink, mut source)) in halves().into_iter().enumerate() {
            let (sent, expected) = (&messages[index], &messages[1 - index]);
            scope.spawn(move || send_with_new_keys(&mut sink, sent));
            scope.spawn(move || assert!(receive_to_the_end(&mut source) == *expected));
        }
    });
}

#[test]
fn a_dropped_sender_is_no_goodbye() {
    let [(sink, _), (_, mut source)] = halves();
    drop(sink);
    assert!(matches!(source.read(&mut [0; 8], PATIENCE), Err(Fault::Vanished)));
}
