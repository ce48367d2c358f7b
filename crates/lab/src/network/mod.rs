//! The machines of a run, each a network namespace of this one, and slow links between them.
//!
//! Nothing has a name outside: a namespace lives as long as a process in it does, its interfaces as long as the
//! namespace. The processes in it end when their standard input closes, at the latest with the process that made the
//! network, however that ends. So there is nothing to clean up.

mod error;
mod host;
mod links;
mod probe;
mod shape;

use std::ffi::OsStr;
use std::process::Command;

use thinwire_train::config::Bandwidth;

pub use error::NetworkError;
pub use links::{SWITCH, WIRE};
pub use probe::{LEAST_RATE, LinkRate, Received, receive, send};
pub use shape::{Shape, TCP_PAYLOAD_SHARE};

use host::Host;
use links::Links;

/// Machines, and links between them.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    links: Links,
    rate: Bandwidth,
}

/// The interfaces of a machine in a chain, by the stage that they lead to.
const NEXT: &str = "next";
const PREVIOUS: &str = "previous";

/// Links have an address range each, which their number is in.
const MOST_STAGES: usize = 256;
/// A star is one address range, in which its switch has a place, too.
const MOST_RANKS: usize = 250;

impl Network {
    /// Makes `stages` machines in a row, and links between neighbours that carry `rate` in each direction, headers included.
    ///
    /// # Errors
    /// Not Linux, not root, or no `unshare`, `nsenter`, `ip` or `tc`.
    pub fn chain(stages: usize, rate: Bandwidth) -> Result<Self, NetworkError> {
        let hosts = hosts(stages, MOST_STAGES)?;
        for (link, two) in hosts.windows(2).enumerate() {
            connect(link, &two[0], &two[1], rate)?;
        }
        Ok(Self { hosts, links: Links::Chain, rate })
    }

    /// Makes `ranks` machines, each with a link to one switch that carries `rate` in each direction, headers included, whoever it
    /// talks to.
    ///
    /// # Errors
    /// As [`Network::chain`].
    pub fn star(ranks: usize, rate: Bandwidth) -> Result<Self, NetworkError> {
        let hosts = hosts(ranks, MOST_RANKS)?;
        let switch = Host::new()?;
        links::join(&switch, &hosts, rate)?;
        Ok(Self { hosts, links: Links::Star { switch }, rate })
    }

    /// Number of machines, a switch aside.
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

    /// As [`Network::command`], beside a star's switch, on its [interface](SWITCH).
    ///
    /// # Panics
    /// The network is a chain.
    pub fn command_at_switch(&self, program: impl AsRef<OsStr>) -> Command {
        let Links::Star { switch } = &self.links else { panic!("a chain has no switch") };
        switch.command(program)
    }

    /// The address of `stage` on a chain's link with the stage before. Stage 0 has none.
    pub fn address(stage: usize) -> Option<String> {
        stage.checked_sub(1).map(|link| address(link, 2))
    }

    /// The address of `rank` in a star.
    pub fn rank_address(rank: usize) -> String {
        links::address(rank + 1)
    }
}

/// So many machines, at most `most`, which know nothing of one another.
fn hosts(stages: usize, most: usize) -> Result<Vec<Host>, NetworkError> {
    if !cfg!(target_os = "linux") {
        return Err(NetworkError::Unsupported);
    }
    if stages > most {
        return Err(NetworkError::TooMany { stages, most });
    }
    let hosts = (0..stages).map(|_| Host::new()).collect::<Result<Vec<_>, _>>()?;
    for host in &hosts {
        host.run("ip", "link set lo up")?;
    }
    Ok(hosts)
}

/// Link `link` of a chain joins stage `link` and the next.
fn connect(link: usize, from: &Host, to: &Host, rate: Bandwidth) -> Result<(), NetworkError> {
    let shape = Shape::of(rate);
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

fn address(link: usize, end: u8) -> String {
    format!("10.77.{link}.{end}")
}
