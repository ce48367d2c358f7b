//! `thinwire probe`: one end of a measurement of a link, as `thinwire lab` starts it.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::{process, thread};

use clap::{Args, Subcommand};
use thinwire_lab::network::{receive, send};

use crate::error::CommandError;
use crate::output::Output;

/// Measure what a link carries, for `thinwire lab`. Ends when standard input closes.
#[derive(Debug, Args)]
pub(crate) struct Probe {
    #[command(subcommand)]
    end: End,
}

#[derive(Debug, Subcommand)]
enum End {
    /// Listen, say where, and count what comes.
    Receive { address: SocketAddr, seconds: f64 },
    /// Send until the receiver has had enough.
    Send { address: SocketAddr },
}

impl Probe {
    pub(crate) fn run(self, _: Output) -> Result<(), CommandError> {
        // Whoever started it holds the other end: when that dies, however it dies, so does this process.
        thread::spawn(|| {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            process::exit(1);
        });
        match self.end {
            End::Receive { address, seconds } => {
                let received = receive(address, seconds, |address| writeln!(io::stdout(), "{address}"))?;
                writeln!(io::stdout(), "{}", serde_json::to_string(&received)?)?;
            }
            End::Send { address } => send(address)?,
        }
        Ok(())
    }
}
