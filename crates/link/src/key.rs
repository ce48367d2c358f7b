//! Ed25519 keys: what a stage is known by.

mod public;
mod secret;
#[cfg(test)]
mod tests;

pub use public::{Fingerprint, ParseKeyError, PublicKey};
pub use secret::{KeyError, SecretKey};
