//! What carries messages.

use std::fmt;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use thinwire_train::config::Bandwidth;

/// Where nothing needs to be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Local {
    /// Ranks are threads of this process and share its memory.
    Memory,
    /// Ranks are processes that share memory.
    Shared,
    /// Ranks are processes, joined by TCP with TLS over the loopback interface.
    Loopback,
}

/// What carries the messages of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Local(Local),
    /// Ranks are processes on machines of their own; each has a link of this rate with one switch.
    Links(Bandwidth),
}

impl Medium {
    pub(super) fn rate(self) -> Option<Bandwidth> {
        match self {
            Self::Local(_) => None,
            Self::Links(rate) => Some(rate),
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(Local::Memory) => f.write_str("threads"),
            Self::Local(Local::Shared) => f.write_str("shared memory"),
            Self::Local(Local::Loopback) => f.write_str("loopback"),
            Self::Links(rate) => write!(f, "links of {rate}"),
        }
    }
}

impl Serialize for Medium {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Local(Local::Memory) => "memory",
            Self::Local(Local::Shared) => "shared",
            Self::Local(Local::Loopback) => "loopback",
            Self::Links(_) => "links",
        })
    }
}
