//! The machines of a run, each a network namespace of this one, and slow links between them.
//!
//! Nothing has a name outside: a namespace lives as long as a process in it does, its interfaces as long as the
//! namespace. The processes in it end when their standard input closes, at the latest with the process that made the
//! network, however that ends. So there is nothing to clean up.

mod error;
mod host;
mod probe;
mod shape;

use std::ffi::OsStr;
use std::process::Command;

use thinwire_train::config::Bandwidth;

pub use error::NetworkError;
pub use probe::{LEAST_RATE, LinkRate, Received, receive, send};
pub use shape::{Shape, TCP_PAYLOAD_SHARE};

use host::Host;

/// Stages in a chain, each on a machine of its own, with a link between neighbours.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    rate: Bandwidth,
}

/// The interfaces of a machine, by the stage that they lead to.
const NEXT: &str = "next";
const PREVIOUS: &str = "previous";

/// Links have an address range each, which their number is in.
const MOST_STAGES: usize = 256;

impl Network {
    /// Makes `stages` machines, and links between them that carry `rate` in each direction, headers included.
    ///
    /// # Errors
    /// Not Linux, not root, or no `unshare`, `nsenter`, `ip` or `tc`.
    pub fn chain(stages: usize, rate: Bandwidth) -> Result<Self, NetworkError> {
        if !cfg!(target_os = "linux") {
            return Err(NetworkError::Unsupported);
        }
        if stages > MOST_STAGES {
            return Err(NetworkError::TooMany { stages, most: MOST_STAGES });
        }
        let hosts = (0..stages).map(|_| Host::new()).collect::<Result<Vec<_>, _>>()?;
        let network = Self { hosts, rate };
        for host in &network.hosts {
            host.run("ip", "link set lo up")?;
        }
        for link in 0..stages.saturating_sub(1) {
            network.connect(link)?;
        }
        Ok(network)
    }

    /// Number of machines.
    pub fn stages(&self) -> usize {
        self.hosts.len()
    }

    /// The rate of every link.
    pub fn rate(&self) -> Bandwidth {
        self.rate
    }

    /// A command that runs `program` on the machine of `stage`; arguments may be added. It becomes the program: the
    /// process that is started is the program's.
    ///
    /// # Panics
    /// There is no such stage.
    pub fn command(&self, stage: usize, program: impl AsRef<OsStr>) -> Command {
        self.hosts[stage].command(program)
    }

    /// The address of `stage` on its link with the stage before. Stage 0 has none.
    pub fn address(stage: usize) -> Option<String> {
        stage.checked_sub(1).map(|link| address(link, 2))
    }

    /// Link `link` joins stage `link` and the next.
    fn connect(&self, link: usize) -> Result<(), NetworkError> {
        let [from, to] = [&self.hosts[link], &self.hosts[link + 1]];
        let shape = Shape::of(self.rate);
        let peer = to.process();
        // Both ends are made where they belong: no interface is ever outside.
        from.run("ip", &format!("link add {NEXT} type veth peer name {PREVIOUS} netns {peer}"))?;
        for (host, interface, end) in [(from, NEXT, 1), (to, PREVIOUS, 2)] {
            host.run("ip", &format!("address add {}/30 dev {interface}", address(link, end)))?;
            host.run("ip", &format!("link set {interface} up"))?;
            host.run("tc", &format!("qdisc add dev {interface} root {shape}"))?;
        }
        Ok(())
    }
}

fn address(link: usize, end: u8) -> String {
    format!("10.77.{link}.{end}")
}
