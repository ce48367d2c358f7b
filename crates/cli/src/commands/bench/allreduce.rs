//! `thinwire bench allreduce`: sums over ranks, compressed and not, beside those of others.

mod busy;
mod case;
mod collect;
mod measure;
mod medium;
mod memory;
mod peers;
mod place;
mod rank;
mod ranks;
mod report;
mod row;
mod session;
mod table;
mod values;
mod wire;
mod workers;

use std::path::PathBuf;

use clap::Args;
use thinwire_lab::network::LEAST_RATE;
use thinwire_train::config::{Bandwidth, ByteSize};

use self::case::{Compensation, Plan};
use self::medium::{Local, Medium};
use self::peers::PeerName;
pub(super) use self::rank::Rank;
use self::session::Session;
use self::wire::Wire;
use crate::error::CommandError;
use crate::output::Output;
use crate::signals::Signals;

/// Add up tensors over ranks, and tell how long it takes.
///
/// A call's time is that of the slowest rank, from the moment all have met. All ranks' results are compared with one another and with
/// the exact sum. Links of a rate need Linux and root: every rank is a process on a machine of its own, a network namespace, with
/// a link to a switch. What they really carry is measured before and after.
#[derive(Debug, Args)]
pub(super) struct AllReduceBench {
    /// Numbers of ranks, 2 to 64.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values = ["2", "4"], value_parser = clap::value_parser!(u16).range(2..=64))]
    ranks: Vec<u16>,
    /// Bytes of a rank's tensor in f32.
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_values = ["64KiB", "1MiB", "16MiB", "64MiB"])]
    sizes: Vec<ByteSize>,
    /// What values travel as: f32 (or exact), bf16, or group with its settings; may be given again [default: f32, bf16,
    /// group:bits=8, group:bits=4].
    #[arg(long = "wire", value_name = "WIRE")]
    wires: Vec<Wire>,
    /// How errors are given back, of wires of the group codec.
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', default_values = ["none", "fused", "separate"])]
    compensation: Vec<Compensation>,
    /// Where ranks are without links of a rate [default: everywhere, or nowhere beside links].
    #[arg(long, value_name = "WHERE,..", value_delimiter = ',')]
    over: Vec<Local>,
    /// Rates of links, such as 1gbit,10gbit; 200kbit is the slowest.
    #[arg(long, value_name = "RATE,..", value_delimiter = ',', value_parser = link_rate)]
    links: Vec<Bandwidth>,
    /// Measured too, on the same links: gloo, mpi, mpi-ring.
    #[arg(long, value_name = "PEER,..", value_delimiter = ',')]
    peers: Vec<PeerName>,
    /// The Python that has `PyTorch`, for gloo.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Measured calls.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Calls before them.
    #[arg(long, value_name = "N", default_value = "1")]
    warmup: u16,
}

impl AllReduceBench {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        Signals::watch()?;
        let sizes = self.sizes.iter().map(|size| values_of(*size)).collect::<Result<Vec<_>, _>>()?;
        let group = |bits| Wire::Group(thinwire_codec::GroupSettings { bits, ..Default::default() });
        let default = [Wire::F32, Wire::Bf16, group(8), group(4)];
        let wires = if self.wires.is_empty() { &default[..] } else { &self.wires };
        let calls = [self.warmup, self.repeats].map(usize::from);
        let session = Session {
            media: self.media(),
            ranks: self.ranks.iter().map(|&ranks| ranks.into()).collect(),
            plan: Plan::new(&sizes, wires, &self.compensation, calls),
            peers: self.peers,
            python: self.python,
        };
        output.print(&session.run()?)?;
        Ok(())
    }

    fn media(&self) -> Vec<Medium> {
        let local: &[Local] = match (&self.over[..], &self.links[..]) {
            ([], []) => &[Local::Memory, Local::Shared, Local::Loopback],
            (over, _) => over,
        };
        let links = self.links.iter().map(|&rate| Medium::Links(rate));
        local.iter().map(|&local| Medium::Local(local)).chain(links).collect()
    }
}

fn link_rate(text: &str) -> Result<Bandwidth, String> {
    let rate: Bandwidth = text.parse().map_err(|error| format!("{error}"))?;
    if rate.rate().bits_per_second() < LEAST_RATE {
        return Err("expected 200kbit or more: slower links cannot be measured in time".to_owned());
    }
    Ok(rate)
}

/// The f32 values of a tensor.
fn values_of(size: ByteSize) -> Result<usize, CommandError> {
    let values = usize::try_from(size.0 / 4).ok().filter(|&values| values > 0 && size.0.is_multiple_of(4));
    values
        .ok_or_else(|| format!("a tensor of {size}: expected a multiple of 4 bytes, those of an f32").into())
}
