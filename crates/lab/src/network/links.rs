//! How machines are joined.

use thinwire_train::config::Bandwidth;

use super::error::NetworkError;
use super::host::Host;
use super::{Network, Shape, address as chain_address};

/// The interface of a machine in a star.
pub const WIRE: &str = "wire";
/// The interface of a star's switch, which every machine reaches.
pub const SWITCH: &str = "switch";

/// Its place in the address range of the star.
const SWITCH_PLACE: usize = 254;

/// What lies between the machines of a network.
#[derive(Debug)]
pub(super) enum Links {
    /// A link between neighbours.
    Chain,
    /// A link of each machine with a bridge on a machine of its own.
    Star { switch: Host },
}

impl Network {
    /// Ways from one machine to another, `(from, to, address of the second)`, on which every direction of every link is
    /// once.
    pub(super) fn ways(&self) -> Vec<(usize, usize, String)> {
        let machines = self.stages();
        match self.links {
            Links::Chain => (0..machines.saturating_sub(1))
                .flat_map(|link| [(link, link + 1, 2), (link + 1, link, 1)].map(|way| (link, way)))
                .map(|(link, (from, to, end))| (from, to, chain_address(link, end)))
                .collect(),
            Links::Star { .. } => (0..machines)
                .map(|from| (from, (from + 1) % machines))
                .map(|(from, to)| (from, to, Self::rank_address(to)))
                .collect(),
        }
    }
}

/// Joins all hosts by links with the switch.
pub(super) fn join(switch: &Host, hosts: &[Host], rate: Bandwidth) -> Result<(), NetworkError> {
    let shape = Shape::of(rate);
    switch.run("ip", "link set lo up")?;
    switch.run("ip", &format!("link add {SWITCH} type bridge"))?;
    switch.run("ip", &format!("address add {}/24 dev {SWITCH}", address(SWITCH_PLACE)))?;
    switch.run("ip", &format!("link set {SWITCH} up"))?;
    for (rank, host) in hosts.iter().enumerate() {
        let port = format!("port{rank}");
        let process = host.process();
        switch.run("ip", &format!("link add {port} type veth peer name {WIRE} netns {process}"))?;
        switch.run("ip", &format!("link set {port} master {SWITCH}"))?;
        host.run("ip", &format!("address add {}/24 dev {WIRE}", address(rank + 1)))?;
        // Its sending end holds each direction to the rate.
        for (machine, interface) in [(switch, port.as_str()), (host, WIRE)] {
            machine.run("ip", &format!("link set {interface} up"))?;
            machine.run("tc", &format!("qdisc add dev {interface} root {shape}"))?;
        }
    }
    Ok(())
}

pub(super) fn address(place: usize) -> String {
    format!("10.77.0.{place}")
}
