//! Gloo, in torch.distributed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::super::place::Place;
use super::super::workers::Start;
use super::{PeerCase, PeerPlan, PeerWire, succeeds};
use crate::error::CommandError;

const SCRIPT: &str = include_str!("gloo.py");

/// A Python with `PyTorch`, and the script.
pub(in super::super) struct Gloo {
    python: PathBuf,
    folder: PathBuf,
}

impl Gloo {
    pub(super) fn find(python: &Path, folder: &Path) -> Result<Self, String> {
        let check =
            "import torch.distributed as d; assert d.is_gloo_available(), 'it was built without Gloo'";
        succeeds(Command::new(python).args(["-c", check]))?;
        let gloo = Self { python: python.to_owned(), folder: folder.to_owned() };
        fs::write(gloo.script(), SCRIPT).map_err(|error| error.to_string())?;
        Ok(gloo)
    }

    fn script(&self) -> PathBuf {
        self.folder.join("gloo.py")
    }

    /// The ranks.
    pub(super) fn ranks(
        &self,
        place: Place<'_>,
        ranks: usize,
        plan: &PeerPlan,
    ) -> Result<Vec<Start>, CommandError> {
        // Where the ranks find each other: a file, as they are on one machine. Sums go over the interface.
        let store = self.folder.join("store");
        match fs::remove_file(&store) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let dtype = |wire| if wire == PeerWire::Bf16 { "bf16" } else { "f32" };
        let case = |case: &PeerCase| json!({ "values": case.sent_values(), "dtype": dtype(case.wire) });
        let cases: Vec<_> = plan.cases.iter().map(case).collect();
        let start = |rank: usize| {
            let mut command = place.command(rank, &self.python);
            command.arg(self.script()).env("GLOO_SOCKET_IFNAME", place.interface());
            let order = json!({
                "rank": rank, "ranks": ranks, "store": store, "warmup": plan.warmup, "repeats": plan.repeats,
                "patience": plan.patience.as_secs(), "cases": cases,
            });
            Start { name: format!("rank {rank} of Gloo"), command, order: Some(order.to_string()) }
        };
        Ok((0..ranks).map(start).collect())
    }
}
