//! Open MPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::place::Place;
use super::super::workers::Start;
use super::{PeerPlan, succeeds};

const PROGRAM: &str = include_str!("mpi.c");

/// How sums are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// As Open MPI decides by the number of ranks and the size.
    Own,
    /// Open MPI's number 4.
    Ring,
}

/// The compiled program.
pub(in super::super) struct Mpi {
    algorithm: Algorithm,
    program: PathBuf,
}

impl Mpi {
    pub(super) fn find(algorithm: Algorithm, folder: &Path) -> Result<Self, String> {
        succeeds(Command::new("mpirun").arg("--version"))?;
        let (source, program) = (folder.join("mpi.c"), folder.join("mpi"));
        fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
        succeeds(Command::new("mpicc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source))?;
        Ok(Self { algorithm, program })
    }

    /// `mpirun`, which starts the ranks. It is where all of them reach it; each rank is on its own machine.
    pub(super) fn start(&self, place: Place<'_>, ranks: usize, plan: &PeerPlan) -> Start {
        let mut command = place.command_between("mpirun");
        let between = place.interface_between();
        command.env("PMIX_MCA_ptl_base_if_include", between); // how a rank reports to mpirun
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
        for [name, value] in [
            ["oob_tcp_if_include", between],
            ["pml", "ob1"],
            ["btl", "tcp,self"], // no shared memory, though all ranks seem to be on one host
            ["btl_tcp_if_include", place.interface()],
            ["btl_tcp_disable_family", "6"],
        ] {
            command.args(["--mca", name, value]);
        }
        if self.algorithm == Algorithm::Ring {
            command.args(["--mca", "coll_tuned_use_dynamic_rules", "1"]);
            command.args(["--mca", "coll_tuned_allreduce_algorithm", "4"]);
        }
        for rank in 0..ranks {
            if rank > 0 {
                command.arg(":");
            }
            let on_its_machine = place.command(rank, &self.program);
            command.args(["-np", "1"]).arg(on_its_machine.get_program()).args(on_its_machine.get_args());
            command.args([plan.warmup, plan.repeats].map(|calls| calls.to_string()));
            command.args(plan.cases.iter().map(|case| case.sent_values().to_string()));
        }
        let algorithm = if self.algorithm == Algorithm::Ring { "ring" } else { "its own choice" };
        Start { name: format!("Open MPI ({algorithm})"), command, order: None }
    }
}
