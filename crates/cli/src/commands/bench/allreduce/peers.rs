//! Other all-reduces, on the same machines and links.

mod gloo;
mod mpi;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use self::gloo::Gloo;
use self::mpi::{Algorithm, Mpi};
use super::collect::follow;
use super::measure::Measured;
use super::place::Place;
use super::workers::Workers;
use crate::error::CommandError;

/// Who else is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PeerName {
    /// Gloo, in `PyTorch`'s torch.distributed.
    Gloo,
    /// Open MPI's `MPI_Allreduce`, with the algorithm that it chooses itself.
    Mpi,
    /// The same with the ring that is the faster one on slow links.
    MpiRing,
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gloo => "gloo",
            Self::Mpi => "mpi",
            Self::MpiRing => "mpi-ring",
        })
    }
}

/// How a peer's values travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerWire {
    F32,
    Bf16,
    /// Half as many f32 values, which are the bytes of bf16 without its arithmetic.
    F32Cut,
}

impl PeerWire {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F32Cut => "f32 cut",
        }
    }
}

/// A tensor that a peer adds up.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerCase {
    /// Values of the tensor that it stands for.
    pub(super) values: usize,
    pub(super) wire: PeerWire,
}

impl PeerCase {
    /// Values that are really added up.
    fn sent_values(self) -> usize {
        match self.wire {
            PeerWire::F32 | PeerWire::Bf16 => self.values,
            PeerWire::F32Cut => self.values / 2,
        }
    }
}

/// What a peer is to do.
pub(super) struct PeerPlan {
    pub(super) cases: Vec<PeerCase>,
    pub(super) warmup: usize,
    pub(super) repeats: usize,
    /// The longest time that one case may take.
    pub(super) patience: Duration,
}

/// A peer that is there.
pub(super) enum Peer {
    Gloo(Gloo),
    Mpi(Mpi),
}

/// One that is not, and why.
#[derive(Debug, Serialize)]
pub(super) struct Missing {
    pub(super) peer: PeerName,
    pub(super) reason: String,
}

impl Peer {
    /// Looks for it; what it needs in files lies in `folder`.
    pub(super) fn find(peer: PeerName, python: &Path, folder: &Path) -> Result<Self, Missing> {
        let found = match peer {
            PeerName::Gloo => Gloo::find(python, folder).map(Self::Gloo),
            PeerName::Mpi => Mpi::find(Algorithm::Own, folder).map(Self::Mpi),
            PeerName::MpiRing => Mpi::find(Algorithm::Ring, folder).map(Self::Mpi),
        };
        found.map_err(|reason| Missing { peer, reason })
    }

    /// Wires of a tensor.
    pub(super) fn wires(&self) -> &'static [PeerWire] {
        match self {
            Self::Gloo(_) => &[PeerWire::F32, PeerWire::Bf16, PeerWire::F32Cut],
            Self::Mpi(_) => &[PeerWire::F32, PeerWire::F32Cut],
        }
    }

    /// Numbers that a rank holds for each value.
    pub(super) fn numbers_a_value(&self) -> u64 {
        match self {
            Self::Gloo(_) => 4, // Input, result, and twice as much while the result is checked.
            Self::Mpi(_) => 3,  // Input, result, what comes from other ranks.
        }
    }

    /// Gives each case of `plan` to `done`.
    pub(super) fn run(
        &self,
        place: Place<'_>,
        ranks: usize,
        plan: &PeerPlan,
        done: impl FnMut(Vec<Measured>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut workers = Workers::start(match self {
            Self::Gloo(gloo) => gloo.ranks(place, ranks, plan)?,
            Self::Mpi(mpi) => vec![mpi.start(place, ranks, plan)],
        })?;
        follow(&mut workers, ranks, plan.patience, done)
    }
}

/// Runs a command that has to succeed; else what it said last.
fn succeeds(command: &mut Command) -> Result<(), String> {
    let name = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start `{}`: {error}", name.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    Err(format!("`{}` failed with {}: {last}", name.display(), output.status))
}
