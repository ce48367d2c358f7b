//! What `thinwire bench allreduce` prints.

use std::fmt;

use serde::Serialize;
use thinwire_lab::network::LinkRate;
use thinwire_train::config::{Bandwidth, ByteSize};

use super::peers::{Missing, PeerName, PeerWire};
use super::row::Row;
use super::table::table;

/// All rows, and what they were measured on.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Cores of this machine, which all ranks share.
    pub(super) processors: usize,
    pub(super) warmup: usize,
    pub(super) repeats: usize,
    pub(super) rows: Vec<Row>,
    pub(super) links: Vec<LinkRates>,
    pub(super) missing: Vec<Missing>,
}

/// What the links of a group really carried.
#[derive(Debug, Serialize)]
pub(super) struct LinkRates {
    pub(super) rate: Bandwidth,
    pub(super) ranks: usize,
    pub(super) before: Vec<LinkRate>,
    pub(super) after: Vec<LinkRate>,
}

impl Report {
    /// Sets each row's speed against that of bf16 in the same place.
    pub(super) fn compare(&mut self) {
        let bf16: Vec<_> = self
            .rows
            .iter()
            .filter(|row| (row.by, row.wire.as_str()) == (By::Thinwire, "bf16"))
            .map(|row| (row.place(), row.median_seconds))
            .collect();
        for row in &mut self.rows {
            let of_bf16 = bf16.iter().find(|(place, _)| *place == row.place());
            row.speed_over_bf16 = of_bf16.map(|(_, seconds)| seconds / row.median_seconds);
        }
    }
}

/// Whose all-reduce it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum By {
    #[serde(serialize_with = "thinwire")]
    Thinwire,
    Peer(PeerName),
}

fn thinwire<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("thinwire")
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thinwire => f.pad("thinwire"),
            Self::Peer(peer) => peer.fmt(f),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processors, warmup, repeats, .. } = self;
        writeln!(f, "{processors} processors; {repeats} calls after {warmup} that do not count")?;
        for rows in self.rows.chunk_by(|row, next| row.place() == next.place()) {
            let (medium, ranks, values) = rows[0].place();
            writeln!(f, "\n{ranks} ranks, {medium}, {}", ByteSize(4 * values as u64))?;
            write!(f, "{}", table(rows))?;
        }
        for LinkRates { rate, ranks, before, after } in &self.links {
            writeln!(
                f,
                "\nlinks of {rate} between {ranks} ranks carried, in Gbit/s of data (expected {})",
                gigabits(before.first().map_or(0, |link| link.expected))
            )?;
            for (when, rates) in [("before", before), ("after", after)] {
                let carried: Vec<_> = rates.iter().map(|link| gigabits(link.measured)).collect();
                writeln!(f, "  {when:<6}  {}", carried.join("  "))?;
            }
        }
        let cut = PeerWire::F32Cut.name();
        if self.rows.iter().any(|row| row.wire == cut) {
            writeln!(f, "\n{cut}: half as many f32 values, so the same bytes as bf16")?;
        }
        for Missing { peer, reason } in &self.missing {
            writeln!(f, "\n{peer} was not measured: {reason}")?;
        }
        write!(
            f,
            "\nspeed: of bf16 by Thinwire; busy: cores of the machine during the calls; link: time that the bytes of a rank need"
        )
    }
}

fn gigabits(bits: u64) -> String {
    format!("{:.3}", bits as f64 / 1e9)
}
