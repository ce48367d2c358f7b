//! One TLS connection shared by a thread that sends and a thread that receives.
//!
//! The connection's state is behind a mutex that is held only while bytes are encrypted or decrypted, never
//! during I/O: the receiver reads ciphertext before it locks, the sender writes ciphertext after it unlocked. Only
//! the sender writes to the socket, in the order of encryption. What the receiver's side of the connection has to
//! say (the answer to a key update) waits inside rustls and leaves with the next frame. So neither thread ever
//! waits for the other's peer, and two ends that both send large frames cannot block each other.

use std::{
    io::{self, IoSlice, Read as _, Write as _},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustls::Connection;

use crate::{
    deadline::Patience,
    paced::{Paced, RawWriter},
    transport::{Fault, Sink, Source},
};

/// How much ciphertext is read at once, in bytes.
const READ_AT_ONCE: usize = 64 * 1024;

/// A byte stream as the operating system offers it.
pub(crate) trait RawReader: Send {
    /// Puts at least one byte at the start of `buffer`; returns how many, 0 at the stream's end.
    fn read_some(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault>;
}

/// Both halves of an established connection.
pub(crate) fn split<R: RawReader, W: RawWriter>(
    connection: Connection,
    input: R,
    out: Paced<W>,
) -> (TlsSink<W>, TlsSource<R>) {
    let tls = Arc::new(Mutex::new(connection));
    let sink = TlsSink { tls: Arc::clone(&tls), out, ciphertext: Vec::new() };
    (sink, TlsSource { tls, input, ciphertext: vec![0; READ_AT_ONCE], pending: 0..0 })
}

/// A thread that panicked did so outside rustls; the connection's state is whole.
pub(super) fn lock(tls: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    tls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending half.
pub(crate) struct TlsSink<W: RawWriter> {
    pub(super) tls: Arc<Mutex<Connection>>,
    out: Paced<W>,
    ciphertext: Vec<u8>,
}

impl<W: RawWriter> TlsSink<W> {
    /// Lets `act` give the connection something to say, then takes all it has to say.
    fn encrypt<T>(&mut self, act: impl FnOnce(&mut Connection) -> io::Result<T>) -> Result<T, Fault> {
        let mut tls = lock(&self.tls);
        let done = act(&mut tls)?;
        self.ciphertext.clear();
        while tls.wants_write() {
            tls.write_tls(&mut self.ciphertext)?;
        }
        Ok(done)
    }
}

impl<W: RawWriter> Sink for TlsSink<W> {
    fn write(&mut self, parts: &[IoSlice<'_>], patience: Patience) -> Result<usize, Fault> {
        // rustls takes what fits its buffer of 64 KiB, which is empty here.
        let taken = self.encrypt(|tls| tls.writer().write_vectored(parts))?;
        if taken == 0 {
            return Err(Fault::Broken(io::ErrorKind::WriteZero.into()));
        }
        self.out.write_all(&self.ciphertext, patience)?;
        Ok(taken)
    }

    fn close(&mut self, patience: Patience) -> Result<(), Fault> {
        self.encrypt(|tls| {
            tls.send_close_notify();
            Ok(())
        })?;
        self.out.write_all(&self.ciphertext, patience)?;
        self.out.finish()
    }
}

/// The peer learns at once that nothing more comes, though the socket stays open for the receiving half.
impl<W: RawWriter> Drop for TlsSink<W> {
    fn drop(&mut self) {
        // Nobody is left to tell if the socket is gone already.
        let _ = self.out.finish();
    }
}

/// The receiving half.
pub(crate) struct TlsSource<R> {
    tls: Arc<Mutex<Connection>>,
    input: R,
    ciphertext: Vec<u8>,
    /// The part of `ciphertext` that the connection has not seen.
    pending: Range<usize>,
}

impl<R: RawReader> Source for TlsSource<R> {
    fn read(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        loop {
            let decrypted = self.decrypt(buffer)?;
            if decrypted > 0 {
                return Ok(decrypted);
            }
            let count = self.input.read_some(&mut self.ciphertext, patience)?;
            if count == 0 {
                return Err(Fault::Vanished);
            }
            self.pending = 0..count;
        }
    }
}

impl<R> TlsSource<R> {
    /// Fills `buffer` as far as the ciphertext at hand goes.
    fn decrypt(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut tls = lock(&self.tls);
        let mut filled = 0;
        while filled < buffer.len() {
            match tls.reader().read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Err(Fault::Closed),
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.pending.is_empty() {
                        break;
                    }
                    let mut ciphertext = &self.ciphertext[self.pending.clone()];
                    self.pending.start += tls.read_tls(&mut ciphertext)?;
                    tls.process_new_packets().map_err(Fault::Tls)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }
}
