//! `[[stage]]`

use serde::{Deserialize, Serialize};
use thinwire_link::PublicKey;

use super::error::{ConfigError, require};

/// Where a stage that is started by hand is reached, and the key it must show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageConfig {
    /// `host:port` the stage listens on. Required.
    pub address: String,
    /// The stage's public key, as `thinwire key` prints it: `ed25519:...`. Required.
    pub key: PublicKey,
}

impl StageConfig {
    pub(super) fn validate(&self, index: usize) -> Result<(), ConfigError> {
        let host_and_port = self
            .address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        require(host_and_port, format_args!("stage[{index}].address"), &self.address, "host:port")
    }
}
