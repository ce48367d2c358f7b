//! The half of a key that others pin.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};

/// An Ed25519 public key, written `ed25519:` and 44 characters of Base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

/// The beginning of a key's text: enough to recognize it in a message, not to pin it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(PublicKey);

/// A text that is not a public key.
#[derive(Debug, thiserror::Error)]
#[error("key {0:?}: expected \"ed25519:\" and 32 bytes in Base64, as `thinwire key` prints it")]
pub struct ParseKeyError(String);

const SCHEME: &str = "ed25519:";

/// What precedes the 32 bytes in a `SubjectPublicKeyInfo` (RFC 8410, section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl PublicKey {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's `SubjectPublicKeyInfo`, DER: what TLS carries.
    pub(crate) fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// The Ed25519 key in a DER `SubjectPublicKeyInfo`, if it is one.
    pub(crate) fn from_spki(spki: &[u8]) -> Option<Self> {
        spki.strip_prefix(&SPKI_PREFIX)?.try_into().ok().map(Self)
    }

    /// A short form for messages.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(*self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", BASE64.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}…", &BASE64.encode(self.0.0)[..12])
    }
}

impl FromStr for PublicKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim()
            .strip_prefix(SCHEME)
            .and_then(|base64| BASE64.decode(base64).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| ParseKeyError(text.to_owned()))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = ParseKeyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}
