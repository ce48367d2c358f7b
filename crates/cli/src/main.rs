//! The `thinwire` command.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 the command
//! failed, 2 it was called wrongly, 130 or 143 a signal stopped it.

mod chronicle;
mod commands;
mod compression;
mod error;
mod files;
mod launch;
mod message_file;
mod output;
mod progress;
mod run_folder;
mod signals;
mod start;
mod stopped;
mod tensor;
mod tensor_parallel;
mod tokenizing;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use output::Output;
use stopped::Stopped;

/// Train, evaluate and inspect language models over slow links.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Print results as one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.run(Output::new(arguments.json)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error::report(&*error);
            error
                .downcast_ref::<Stopped>()
                .map_or(ExitCode::FAILURE, |stopped| stopped.signal.exit_code().into())
        }
    }
}
