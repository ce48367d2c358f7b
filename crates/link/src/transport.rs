//! What the framing asks of whatever carries its bytes.

use std::{
    io::{self, IoSlice},
    time::Duration,
};

use crate::deadline::Patience;

/// Why a transport could not move a byte.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No byte moved for this long.
    Idle(Duration),
    /// The peer ended in good order.
    Closed,
    /// The stream ended without a goodbye.
    Vanished,
    /// The connection broke.
    Broken(io::Error),
    /// TLS found something wrong.
    Tls(rustls::Error),
}

/// Bytes from the peer.
pub(crate) trait Source: Send {
    /// Puts at least one byte at the start of `buffer`, which is not empty; returns how many.
    fn read(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault>;
}

/// Bytes to the peer.
pub(crate) trait Sink: Send {
    /// Sends at least one byte from the front of `parts`, of which the first is not empty; returns how many.
    fn write(&mut self, parts: &[IoSlice<'_>], patience: Patience) -> Result<usize, Fault>;

    /// Ends the stream in good order.
    fn close(&mut self, patience: Patience) -> Result<(), Fault>;
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            // Not "would block", at which a caller may try again.
            Fault::Idle(_) => Self::new(io::ErrorKind::TimedOut, "the deadline has passed"),
            Fault::Closed | Fault::Vanished => io::ErrorKind::UnexpectedEof.into(),
            Fault::Broken(error) => error,
            Fault::Tls(error) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Vanished,
            // A TLS error travels inside an I/O error where rustls implements the I/O traits.
            io::ErrorKind::InvalidData => match error.downcast::<rustls::Error>() {
                Ok(tls) => Self::Tls(tls),
                Err(error) => Self::Broken(error),
            },
            _ => Self::Broken(error),
        }
    }
}
