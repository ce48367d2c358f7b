//! Who is at the other end.

use std::{fmt, net::SocketAddr, sync::Arc};

use crate::key::PublicKey;

/// The other end of a link: its stage, where it is, and its key. Cheap to clone; errors carry it.
#[derive(Clone, PartialEq, Eq)]
pub struct Peer(Arc<Facts>);

#[derive(PartialEq, Eq)]
struct Facts {
    stage: u32,
    address: PeerAddress,
    key: Option<PublicKey>,
}

/// Where a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// In this process.
    Memory,
    /// At a TCP address.
    Tcp(SocketAddr),
}

impl Peer {
    pub(crate) fn in_memory(stage: u32) -> Self {
        Self(Arc::new(Facts { stage, address: PeerAddress::Memory, key: None }))
    }

    pub(crate) fn at(stage: u32, address: SocketAddr, key: PublicKey) -> Self {
        Self(Arc::new(Facts { stage, address: PeerAddress::Tcp(address), key: Some(key) }))
    }

    /// Its stage number, from 0.
    pub fn stage(&self) -> u32 {
        self.0.stage
    }

    /// Where it is.
    pub fn address(&self) -> PeerAddress {
        self.0.address
    }

    /// The key it proved to hold; none in memory.
    pub fn key(&self) -> Option<&PublicKey> {
        self.0.key.as_ref()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.address, &self.0.key) {
            (PeerAddress::Tcp(address), Some(key)) => {
                write!(f, "stage {} at {address} ({})", self.0.stage, key.fingerprint())
            }
            _ => write!(f, "stage {} in memory", self.0.stage),
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({self})")
    }
}
