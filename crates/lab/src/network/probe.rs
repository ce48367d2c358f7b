//! Measuring what a link really carries.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thinwire_train::config::Bandwidth;

use super::error::NetworkError;
use super::host::out_of_the_foreground;
use super::{Network, Shape};

/// How long either end waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// Left out at the start: the bucket is full, and TCP has its pace to find.
const WARMUP: Duration = Duration::from_millis(100);
/// At least so long is measured, and at least so many bits, so that single packets do not count.
const SECONDS: f64 = 0.5;
const BITS: f64 = 2e6;
/// The slowest rate, in bits a second: what has been sent of one measurement and is still on its way holds up the next one, on
/// slower links for longer than a probe waits.
pub const LEAST_RATE: u64 = 200_000;
/// Times that a rate is measured before it is believed to be wrong.
const ATTEMPTS: u32 = 5;
/// Waited before the second time, and each time more by as much.
const PAUSE: Duration = Duration::from_millis(300);

/// What one direction of a link carried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkRate {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Data, without headers, in bits a second.
    pub measured: u64,
    /// What the configured rate leaves for data, in bits a second.
    pub expected: u64,
}

/// What a receiver has counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Bytes of data.
    pub bytes: u64,
    /// The time in which they came.
    pub seconds: f64,
}

impl Network {
    /// Measures every link in both directions, one after the other; in a star, one machine's way out together with the next one's
    /// way in. `probe` is a command that takes `receive ADDRESS
    /// SECONDS` or `send ADDRESS`, does what [`receive`] or [`send`] do, and prints the address that it listens at, then
    /// what it has [`Received`] in JSON, a line each.
    ///
    /// # Errors
    /// A probe that fails, and a rate that is off by more than `tolerance`, a share.
    pub fn measure(&self, probe: &[OsString], tolerance: f64) -> Result<Vec<LinkRate>, NetworkError> {
        let ways = self.ways().into_iter();
        ways.map(|(from, to, address)| self.rate_of(probe, [from, to], &address, tolerance)).collect()
    }

    /// A machine that is busy with something else may be too slow for a fast link at times, so a rate that is off is
    /// measured again. The link itself is never faster than it is held to.
    fn rate_of(
        &self,
        probe: &[OsString],
        [from, to]: [usize; 2],
        at: &str,
        tolerance: f64,
    ) -> Result<LinkRate, NetworkError> {
        let mut attempt = 1;
        loop {
            let counted = self.transfer(probe, from, to, at);
            let counted = counted.map_err(|reason| NetworkError::Probe { from, to, reason })?;
            let measured = (counted.bytes as f64 * 8.0 / counted.seconds) as u64;
            let rate = LinkRate { from, to, measured, expected: Shape::of(self.rate()).payload_rate() };
            match rate.check(self.rate(), tolerance) {
                Ok(()) => return Ok(rate),
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(_) => thread::sleep(PAUSE * attempt),
            }
            attempt += 1;
        }
    }

    fn transfer(&self, probe: &[OsString], from: usize, to: usize, at: &str) -> Result<Received, String> {
        let seconds = SECONDS.max(BITS / self.rate().rate().bits_per_second() as f64);
        let mut receiver = Probe::start(self.command(to, &probe[0]), &probe[1..], |command| {
            command.args(["receive", &format!("{at}:0"), &seconds.to_string()]);
        })?;
        let mut lines = BufReader::new(receiver.0.stdout.take().ok_or("no standard output")?).lines();
        let mut line = |what| match lines.next() {
            Some(Ok(line)) => Ok(line),
            _ => Err(format!("the receiver did not say {what}")),
        };
        let address = line("where it listens")?;
        let _sender = Probe::start(self.command(from, &probe[0]), &probe[1..], |command| {
            command.args(["send", &address]);
        })?;
        let counted = line("what came")?;
        serde_json::from_str(&counted).map_err(|error| format!("`{counted}`: {error}"))
    }
}

impl LinkRate {
    fn check(&self, rate: Bandwidth, tolerance: f64) -> Result<(), NetworkError> {
        let Self { from, to, measured, expected } = *self;
        if (measured as f64 - expected as f64).abs() > tolerance * expected as f64 {
            return Err(NetworkError::Rate { from, to, measured, expected, rate, tolerance });
        }
        Ok(())
    }
}

/// One end of a measurement. It ends with this value.
struct Probe(Child);

impl Probe {
    fn start(
        mut command: Command,
        before: &[OsString],
        add: impl FnOnce(&mut Command),
    ) -> Result<Self, String> {
        command.args(before);
        add(&mut command);
        // Standard error is the user's: it is silent unless a probe breaks.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        out_of_the_foreground(&mut command);
        command.spawn().map(Self).map_err(|error| format!("cannot start a probe: {error}"))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.kill(); // one that has ended is fine
        let _ = self.0.wait();
    }
}

/// Listens at `address`, tells where, accepts one connection, and counts what comes in the `seconds` after a short
/// warm-up.
///
/// # Errors
/// Nobody connects or sends within 10 s, or the connection breaks.
pub fn receive(
    address: SocketAddr,
    seconds: f64,
    tell: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> io::Result<Received> {
    let listener = TcpListener::bind(address)?;
    tell(listener.local_addr()?)?;
    let mut stream = accept(&listener)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 18];
    count(&mut stream, &mut buffer, WARMUP)?;
    count(&mut stream, &mut buffer, Duration::try_from_secs_f64(seconds).map_err(io::Error::other)?)
}

/// Connects to `address` and sends until the receiver has had enough.
///
/// # Errors
/// The connection cannot be made.
pub fn send(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let zeros = vec![0; 1 << 16];
    while stream.write_all(&zeros).is_ok() {} // the receiver closes when it has counted
    Ok(())
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Counts after the first data that comes until `time` has passed.
fn count(stream: &mut impl Read, buffer: &mut [u8], time: Duration) -> io::Result<Received> {
    let mut read = || match stream.read(buffer)? {
        0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        read => Ok(read as u64),
    };
    // What comes while this thread waits for a core must not count without its time: a link never seems too fast.
    let begin = Instant::now();
    read()?;
    let mut bytes = 0;
    while begin.elapsed() < time {
        bytes += read()?;
    }
    Ok(Received { bytes, seconds: begin.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each read takes a while and brings a byte.
    struct Slow(Duration);

    impl Read for Slow {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            thread::sleep(self.0);
            Ok(1)
        }
    }

    #[test]
    fn nothing_is_counted_without_its_time() {
        let each = Duration::from_millis(10);
        let Received { bytes, seconds } = count(&mut Slow(each), &mut [0], 4 * each).unwrap();
        assert!(bytes > 0 && seconds >= (bytes + 1) as f64 * each.as_secs_f64(), "{bytes} in {seconds} s");
    }
}
