//! Where the stages of a run are started.

use std::env;
use std::io;
use std::process::Command;

use thinwire_lab::network::Network;

/// The machines of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hosts<'a> {
    /// This one.
    Here,
    /// One for each stage, with links of their own.
    Network(&'a Network),
}

impl Hosts<'_> {
    /// This program, on the machine of `stage`.
    pub(super) fn thinwire(self, stage: usize) -> io::Result<Command> {
        let program = env::current_exe()?;
        Ok(match self {
            Self::Here => Command::new(program),
            Self::Network(network) => network.command(stage, program),
        })
    }

    /// Where `stage` listens for the one before it: at a free port. Stage 0 does not.
    pub(super) fn listen(self, stage: usize) -> Option<String> {
        let address = match self {
            Self::Here => (stage > 0).then(|| "127.0.0.1".to_owned()),
            Self::Network(_) => Network::address(stage),
        };
        address.map(|address| format!("{address}:0"))
    }
}
