//! The side that listens.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread::{self, Scope},
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

/// How often a waiting listener looks for new connections.
const POLL: Duration = Duration::from_millis(5);

/// How many connections may be in their handshake at once.
const AT_ONCE: usize = 16;

/// How many connections may be there that have said nothing yet. The oldest makes room for one more: the right peer
/// speaks first, so it is never silent for long.
const SILENT: usize = 256;

/// A bound TCP port.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address` (`host:port`; port 0 takes a free one).
    ///
    /// # Errors
    /// [`LinkError::Bind`], as when the port is in use.
    pub fn bind(address: &str) -> Result<Self, LinkError> {
        let refused = |source| LinkError::Bind { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the stage that holds the `pinned` key.
    ///
    /// Connections of others, and those that say nothing, are refused while it goes on listening; several are in
    /// their handshake at once, from their first byte on, so that silent ones do not keep the right one out.
    ///
    /// # Errors
    /// [`LinkError::Disagreement`], [`LinkError::Hello`] and [`LinkError::Frame`] (another protocol version) for
    /// the right peer with other terms; [`LinkError::NobodyCame`] at the connect deadline, with the reason of the
    /// last refusal.
    pub fn accept(
        &self,
        identity: &SecretKey,
        pinned: &PublicKey,
        config: &LinkConfig,
    ) -> Result<Link, LinkError> {
        let keys = Keys { identity, pinned };
        thread::scope(|scope| {
            let mut candidates = Candidates::new(keys, config);
            let outcome = self.choose(scope, &mut candidates);
            candidates.dismiss();
            outcome
        })
    }

    fn choose<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        candidates: &mut Candidates<'env>,
    ) -> Result<Link, LinkError> {
        let countdown = Countdown::start(candidates.config.deadlines.connect);
        let mut last_refusal = None;
        while !countdown.is_over() {
            let failed = |source| Box::new(LinkError::Accept { address: self.address, source });
            let mut wait = POLL.min(countdown.left());
            match self.listener.accept().and_then(|(socket, peer)| candidates.welcome(socket, peer)) {
                Ok(()) => wait = Duration::ZERO, // there may be more in the queue
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(source) => last_refusal = Some(failed(source)),
            }
            if let Err(source) = candidates.examine_those_that_speak(scope) {
                last_refusal = Some(failed(source));
            }
            match candidates.next_verdict(wait) {
                Some(Ok(link)) => return Ok(link),
                Some(Err(error)) if concerns_the_right_peer(&error) => return Err(error),
                Some(Err(error)) => last_refusal = Some(Box::new(error)),
                None => {}
            }
        }
        Err(LinkError::NobodyCame {
            stage: candidates.config.hello.peer_stage,
            pinned: *candidates.keys.pinned,
            address: self.address,
            waited: countdown.elapsed(),
            source: last_refusal,
        })
    }
}

/// Whoever meets a wrong key is not the awaited peer; all else that is final is.
fn concerns_the_right_peer(error: &LinkError) -> bool {
    error.is_final() && !matches!(error, LinkError::WrongKey { .. } | LinkError::KeyRefused { .. })
}

/// What the thread of a candidate reports, in this order.
enum Report {
    Verdict(Result<Link, LinkError>),
    Gone,
}

/// A connection that has not begun its handshake.
struct Newcomer {
    socket: TcpStream,
    address: SocketAddr,
    /// Of the handshake, and of the silence before it.
    countdown: Countdown,
}

impl Newcomer {
    /// Whether there is something to examine: bytes, an end, or a deadline that is over.
    fn is_due(&self) -> bool {
        let peeked = self.socket.peek(&mut [0]);
        self.countdown.is_over() || !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Connections that are silent, and those in their handshake, each in a thread of its own.
struct Candidates<'a> {
    keys: Keys<'a>,
    config: &'a LinkConfig,
    newcomers: VecDeque<Newcomer>,
    sockets: HashMap<u64, TcpStream>,
    came: u64,
    reports: mpsc::Receiver<(u64, Report)>,
    reporter: mpsc::Sender<(u64, Report)>,
}

impl<'env> Candidates<'env> {
    fn new(keys: Keys<'env>, config: &'env LinkConfig) -> Self {
        let (reporter, reports) = mpsc::channel();
        let (newcomers, sockets) = (VecDeque::new(), HashMap::new());
        Self { keys, config, newcomers, sockets, came: 0, reports, reporter }
    }

    /// Takes one more connection, which may be silent.
    fn welcome(&mut self, socket: TcpStream, address: SocketAddr) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        if self.newcomers.len() == SILENT {
            self.newcomers.pop_front();
        }
        let countdown = Countdown::start(self.config.deadlines.handshake);
        self.newcomers.push_back(Newcomer { socket, address, countdown });
        Ok(())
    }

    /// Begins the handshakes of those that have spoken, as many as there is room for.
    fn examine_those_that_speak<'scope>(&mut self, scope: &'scope Scope<'scope, 'env>) -> io::Result<()> {
        let mut index = 0;
        while self.sockets.len() < AT_ONCE && index < self.newcomers.len() {
            if !self.newcomers[index].is_due() {
                index += 1;
            } else if let Some(newcomer) = self.newcomers.remove(index) {
                self.examine(scope, newcomer)?;
            }
        }
        Ok(())
    }

    /// Begins the handshake of one connection.
    ///
    /// # Errors
    /// The socket's, or the system's where it has no room for one more thread.
    fn examine<'scope>(&mut self, scope: &'scope Scope<'scope, 'env>, newcomer: Newcomer) -> io::Result<()> {
        let Newcomer { socket, address, countdown: handshake } = newcomer;
        socket.set_nonblocking(false)?;
        let (spare, copy) = (socket.try_clone()?, socket.try_clone()?);
        let number = self.came;
        self.came += 1;
        let (keys, config, reporter) = (self.keys, self.config, self.reporter.clone());
        thread::Builder::new().name(format!("handshake with {address}")).spawn_scoped(scope, move || {
            let tls = tls::server(keys.identity, keys.pinned);
            let verdict = establish(socket, address, tls, keys, config, handshake);
            let refused = verdict.is_err();
            // Nobody listens any more once another connection was chosen.
            let _ = reporter.send((number, Report::Verdict(verdict)));
            if refused {
                linger(spare, handshake);
            }
            let _ = reporter.send((number, Report::Gone));
        })?;
        self.sockets.insert(number, copy);
        Ok(())
    }

    /// The next outcome of a handshake, if one comes while `wait` lasts.
    fn next_verdict(&mut self, wait: Duration) -> Option<Result<Link, LinkError>> {
        match self.reports.recv_timeout(wait).ok()? {
            (number, Report::Gone) => {
                self.sockets.remove(&number);
                None
            }
            (number, Report::Verdict(verdict)) => {
                if verdict.is_ok() {
                    self.sockets.remove(&number);
                }
                Some(verdict)
            }
        }
    }

    /// Ends all that are left, and with them their threads.
    fn dismiss(&self) {
        for socket in self.sockets.values() {
            // One that is gone already needs no goodbye.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
