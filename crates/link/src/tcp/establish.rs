//! From a connected socket to a link: TLS, then hellos, both within the handshake's deadline.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{AlertDescription, CertificateError, Connection};

use crate::{
    counters::Counters,
    deadline::{Countdown, Patience},
    error::LinkError,
    framed::{FramedReceiver, FramedSender},
    handshake,
    key::{PublicKey, SecretKey},
    link::{Link, LinkConfig},
    paced::Paced,
    peer::Peer,
    tls::{self, RawReader as _, TlsSink, TlsSource, WrongKey},
};

use super::socket::{SocketReader, SocketWriter, halves};

/// How long a refused peer is given to read why, at most.
const LINGER: Duration = Duration::from_millis(500);

/// The keys of a connection.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) identity: &'a SecretKey,
    pub(super) pinned: &'a PublicKey,
}

/// Makes a link of `socket` before the countdown ends.
pub(super) fn establish(
    socket: TcpStream,
    address: SocketAddr,
    tls: Result<Connection, rustls::Error>,
    keys: Keys<'_>,
    config: &LinkConfig,
    countdown: Countdown,
) -> Result<Link, LinkError> {
    let counters = Arc::new(Counters::default());
    let patience = countdown.within(Duration::MAX);
    let failed = |source| handshake_error(address, keys, countdown, source);
    let mut tls = tls.map_err(io::Error::other).map_err(failed)?;
    let (input, out) = halves(socket, Arc::clone(&counters)).map_err(failed)?;
    let mut stream =
        Handshaking { input, out: Paced::new(out, config.rate, Arc::clone(&counters)), patience };
    if let Err(error) = tls.complete_io(&mut stream) {
        // The alert that tells the peer why; it may not get through, and that changes nothing.
        while tls.wants_write() && tls.write_tls(&mut stream).is_ok() {}
        return Err(failed(error));
    }

    let peer = Peer::at(config.hello.peer_stage, address, *keys.pinned);
    let (sink, source) = tls::split(tls, stream.input, stream.out);
    let sender = FramedSender::new(sink, peer.clone(), Arc::clone(&counters), patience);
    let receiver =
        FramedReceiver::new(source, peer.clone(), config.hello.run, Arc::clone(&counters), patience);
    introduce(sender, receiver, config, peer, counters).map_err(|error| match error {
        LinkError::Tls { source, .. } if refuses_key(&source) => {
            LinkError::KeyRefused { address, ours: keys.identity.public() }
        }
        error => error,
    })
}

fn introduce(
    mut sender: FramedSender<TlsSink<SocketWriter>>,
    mut receiver: FramedReceiver<TlsSource<SocketReader>>,
    config: &LinkConfig,
    peer: Peer,
    counters: Arc<Counters>,
) -> Result<Link, LinkError> {
    handshake::exchange(&mut sender, &mut receiver, &config.hello, &peer)?;
    let patience = Patience::Idle(config.deadlines.progress);
    sender.set_patience(patience);
    receiver.set_patience(patience);
    Ok(Link { peer, sender: Box::new(sender), receiver: Box::new(receiver), counters })
}

/// A socket during the TLS handshake, as rustls wants to use it.
struct Handshaking {
    input: SocketReader,
    out: Paced<SocketWriter>,
    patience: Patience,
}

impl io::Read for Handshaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read_some(buffer, self.patience).map_err(io::Error::from)
    }
}

impl io::Write for Handshaking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes, self.patience).map_err(io::Error::from)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tells the wrong keys from all else that can go wrong.
fn handshake_error(
    address: SocketAddr,
    keys: Keys<'_>,
    countdown: Countdown,
    source: io::Error,
) -> LinkError {
    match source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other))) => {
            if let Some(wrong) = other.0.downcast_ref::<WrongKey>() {
                let (presented, pinned) = (wrong.presented.clone(), wrong.pinned);
                return LinkError::WrongKey { address, presented, pinned };
            }
        }
        Some(error) if refuses_key(error) => {
            return LinkError::KeyRefused { address, ours: keys.identity.public() };
        }
        _ => {}
    }
    LinkError::TlsHandshake { address, waited: countdown.elapsed(), source }
}

/// Whether this is the alert that a verifier sends for [`WrongKey`].
fn refuses_key(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::AlertReceived(AlertDescription::CertificateUnknown))
}

/// Ends a refused connection: says that nothing more comes, and drops what the peer still sends for a moment.
/// Closing a socket with unread bytes in it resets the connection, which may destroy the alert or the hello that
/// tells the peer why it was refused.
pub(super) fn linger(socket: TcpStream, handshake: Countdown) {
    let patience = handshake.within(LINGER);
    // All of this is a courtesy to a peer that may be gone.
    let _ = socket.shutdown(Shutdown::Write);
    if let Ok((mut reader, _writer)) = halves(socket, Arc::default()) {
        let mut dropped = [0; 4096];
        while matches!(reader.read_some(&mut dropped, patience), Ok(1..)) {}
    }
}
