//! A blocking socket whose every operation has a deadline.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{counters::Counters, deadline::Patience, paced::RawWriter, tls::RawReader, transport::Fault};

/// The shortest timeout the operating system is given; it takes zero for "none".
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A write that sent a part and then stalled does not say when it stalled. Writes are therefore cut into waits of
/// this fraction of the deadline, which bounds how late the deadline is noticed.
const WAITS_A_DEADLINE: u32 = 8;

/// The receiving half.
pub(crate) struct SocketReader {
    socket: TcpStream,
    timeout: Option<Duration>,
    counters: Arc<Counters>,
}

/// The sending half.
pub(crate) struct SocketWriter {
    socket: TcpStream,
    timeout: Option<Duration>,
}

/// Both halves of a connected socket.
pub(crate) fn halves(socket: TcpStream, counters: Arc<Counters>) -> io::Result<(SocketReader, SocketWriter)> {
    socket.set_nodelay(true)?;
    let reader = SocketReader { socket: socket.try_clone()?, timeout: None, counters };
    Ok((reader, SocketWriter { socket, timeout: None }))
}

impl RawReader for SocketReader {
    fn read_some(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        let start = Instant::now();
        let outcome = self.read_within(buffer, patience);
        self.counters.received.count_blocked(start.elapsed());
        self.counters.received.count_wire(*outcome.as_ref().unwrap_or(&0));
        outcome
    }
}

impl SocketReader {
    fn read_within(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        let start = Instant::now();
        loop {
            let wait = patience.allowance();
            if wait.is_zero() {
                return Err(Fault::Idle(start.elapsed()));
            }
            let wait = wait.max(SHORTEST_WAIT);
            if self.timeout != Some(wait) {
                self.socket.set_read_timeout(Some(wait))?;
                self.timeout = Some(wait);
            }
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if timed_out(&error) => return Err(Fault::Idle(start.elapsed())),
                outcome => return outcome.map_err(Fault::from),
            }
        }
    }
}

impl RawWriter for SocketWriter {
    fn write_some(&mut self, bytes: &[u8], patience: Patience) -> Result<usize, Fault> {
        let start = Instant::now();
        let allowance = patience.allowance();
        let wait = (allowance / WAITS_A_DEADLINE).max(SHORTEST_WAIT);
        if self.timeout != Some(wait) {
            self.socket.set_write_timeout(Some(wait))?;
            self.timeout = Some(wait);
        }
        while start.elapsed() < allowance {
            match self.socket.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted || timed_out(&error) => {}
                outcome => return outcome.map_err(Fault::from),
            }
        }
        Err(Fault::Idle(start.elapsed()))
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.socket.shutdown(Shutdown::Write).map_err(Fault::from)
    }
}

/// Whether the socket's timeout passed. Systems name it differently; on Unix, "timed out" is a connection that the
/// system itself has given up.
fn timed_out(error: &io::Error) -> bool {
    let name = if cfg!(windows) { io::ErrorKind::TimedOut } else { io::ErrorKind::WouldBlock };
    error.kind() == name
}
