//! `thinwire bench`: speed on this machine.

mod codec;
mod train;

use clap::{Args, Subcommand};

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
}

impl Bench {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        match self.subject {
            Subject::Codec(bench) => bench.run(output),
            Subject::Train(bench) => bench.run(output),
        }
    }
}
