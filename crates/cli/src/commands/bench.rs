//! `thinwire bench`: speed on this machine.

mod allreduce;
mod codec;
mod train;

use clap::{Args, Subcommand};

use self::allreduce::{AllReduceBench, Rank};
use self::codec::CodecBench;
use self::train::TrainBench;
use crate::error::CommandError;
use crate::output::Output;

/// Measure speed on this machine.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Codec(CodecBench),
    Train(TrainBench),
    #[command(name = "allreduce")]
    AllReduce(AllReduceBench),
    #[command(name = "allreduce-rank", hide = true)]
    Rank(Rank),
}

impl Bench {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        match self.subject {
            Subject::Codec(bench) => bench.run(output),
            Subject::Train(bench) => bench.run(output),
            Subject::AllReduce(bench) => bench.run(output),
            Subject::Rank(rank) => rank.run(output),
        }
    }
}
