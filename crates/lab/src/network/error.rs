//! What can go wrong with a network.

use std::io;

use thinwire_train::config::Bandwidth;

/// Why there is no network, or none as asked for.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// Another system.
    #[error("links of a rate need network namespaces, which Linux alone has")]
    Unsupported,
    /// More machines than there are addresses for.
    #[error("{stages} machines in one network: expected at most {most}")]
    TooMany {
        /// Machines asked for.
        stages: usize,
        /// Machines that can be had.
        most: usize,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`, which links of a rate need (it is in util-linux or iproute2)")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A namespace could not be made.
    #[error("cannot make a network namespace; links of a rate need root: {said}")]
    Namespace {
        /// What `unshare` said.
        said: String,
    },
    /// A command that shapes the network failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command.
        command: String,
        /// What it said.
        said: String,
    },
    /// A link's rate could not be measured.
    #[error("cannot measure the link from machine {from} to machine {to}: {reason}")]
    Probe {
        /// The sending stage.
        from: usize,
        /// The receiving stage.
        to: usize,
        /// What happened.
        reason: String,
    },
    /// A link does not have its rate.
    #[error(
        "the link from stage {from} to stage {to} carries {measured} bit/s, {:+.1} % off the {expected} bit/s that a \
         rate of {rate} leaves beside the headers (lab.tolerance is {:.1} %)",
        100.0 * (*measured as f64 / *expected as f64 - 1.0), 100.0 * tolerance
    )]
    Rate {
        /// The sending stage.
        from: usize,
        /// The receiving stage.
        to: usize,
        /// Payload that was carried, in bits a second.
        measured: u64,
        /// Payload that should be, in bits a second.
        expected: u64,
        /// The configured rate.
        rate: Bandwidth,
        /// The largest share that may be missing or too much.
        tolerance: f64,
    },
}
