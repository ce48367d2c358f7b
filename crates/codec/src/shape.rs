use std::fmt;

use crate::error::CodecError;

/// The extent of an activation, `[samples, tokens, channels]`, row-major: channels vary fastest.
///
/// Any extent may be 0; such a tensor is encoded as a message without a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Samples of the micro-batch (`B`).
    pub samples: usize,
    /// Tokens of one sample (`S`).
    pub tokens: usize,
    /// Channels of one token (`C`).
    pub channels: usize,
}

impl Shape {
    /// A shape of `samples` x `tokens` x `channels`.
    pub const fn new(samples: usize, tokens: usize, channels: usize) -> Self {
        Self { samples, tokens, channels }
    }

    /// The number of values.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] if the product does not fit in `usize`.
    pub fn elements(self) -> Result<usize, CodecError> {
        self.samples
            .checked_mul(self.tokens)
            .and_then(|rows| rows.checked_mul(self.channels))
            .ok_or(CodecError::TooLarge { shape: self })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}, {}]", self.samples, self.tokens, self.channels)
    }
}
