//! The identity of a run.

use std::{fmt, str::FromStr};

use ring::rand::SecureRandom as _;
use serde::{Deserialize, Serialize};

use crate::hex;

/// 16 bytes that all stages of one run share; written as 32 hexadecimal digits.
///
/// Every frame carries it, so that a stage of another run, or of an earlier try, is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(pub [u8; 16]);

/// A text that is not 32 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("run id {0:?}: expected 32 hexadecimal digits")]
pub struct ParseRunIdError(String);

impl RunId {
    /// A fresh id from the system's random source.
    ///
    /// # Panics
    /// If the system has no working random source.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system's random source works");
        Self(bytes)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl FromStr for RunId {
    type Err = ParseRunIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        hex::parse(text).map(Self).ok_or_else(|| ParseRunIdError(text.to_owned()))
    }
}

impl TryFrom<String> for RunId {
    type Error = ParseRunIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let run = RunId::random();
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        assert_ne!(run, RunId::random());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "00", "+0000000000000000000000000000000", &"g".repeat(32), &"0".repeat(33)] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
