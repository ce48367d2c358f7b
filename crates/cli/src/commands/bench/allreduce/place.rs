//! Where processes run and how they reach each other.

use std::ffi::OsStr;
use std::process::Command;

use thinwire_lab::network::{Network, SWITCH, WIRE};
use thinwire_train::config::Bandwidth;

/// The machines of a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// This one, for all ranks.
    Here,
    /// One for each rank, around a switch.
    Star(&'a Network),
}

impl Place<'_> {
    /// A command that becomes `program` on the machine of `rank`.
    pub(super) fn command(self, rank: usize, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Here => Command::new(program),
            Self::Star(network) => network.command(rank, program),
        }
    }

    /// The same where every rank can be reached from.
    pub(super) fn command_between(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Here => Command::new(program),
            Self::Star(network) => network.command_at_switch(program),
        }
    }

    /// Where `rank` is reached by the others.
    pub(super) fn address(self, rank: usize) -> String {
        match self {
            Self::Here => "127.0.0.1".to_owned(),
            Self::Star(_) => Network::rank_address(rank),
        }
    }

    /// What links are held to.
    pub(super) fn rate(self) -> Option<Bandwidth> {
        match self {
            Self::Here => None,
            Self::Star(network) => Some(network.rate()),
        }
    }

    /// The interface of a rank.
    pub(super) fn interface(self) -> &'static str {
        match self {
            Self::Here => "lo",
            Self::Star(_) => WIRE,
        }
    }

    /// The interface between them.
    pub(super) fn interface_between(self) -> &'static str {
        match self {
            Self::Here => "lo",
            Self::Star(_) => SWITCH,
        }
    }
}
