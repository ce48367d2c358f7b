//! What a frame is for.

use std::fmt;

/// What a frame carries. The discriminant is the byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// The first frame in each direction: who speaks, and the terms both ends must share.
    Hello = 0,
    /// The second frame in each direction: the peer's hello came and fits. No payload.
    Ready = 1,
    /// A boundary activation of a training micro-batch: a codec message.
    Forward = 2,
    /// The gradient of a boundary activation: a codec message.
    Backward = 3,
    /// A boundary activation of an evaluation batch: a codec message.
    EvalForward = 4,
    /// In place of a [`Forward`](Self::Forward) frame: the micro-batch is lost. No payload.
    PoisonedForward = 5,
    /// In place of a [`Backward`](Self::Backward) frame: the micro-batch is lost. No payload.
    PoisonedBackward = 6,
    /// An exchange at the end of a step, or any other bytes that are not a tensor.
    Control = 7,
    /// The sender gives up: the payload is the reason, UTF-8.
    Abort = 8,
    /// A rank's part of a sum over ranks: a codec message of a tile.
    Collective = 9,
}

/// The classes that frames are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameClass {
    /// Frames that carry codec messages.
    Data,
    /// [`FrameKind::Collective`].
    Collective,
    /// All others.
    Control,
}

impl FrameKind {
    /// Every kind, in the order of its wire byte.
    pub const ALL: [Self; 10] = [
        Self::Hello,
        Self::Ready,
        Self::Forward,
        Self::Backward,
        Self::EvalForward,
        Self::PoisonedForward,
        Self::PoisonedBackward,
        Self::Control,
        Self::Abort,
        Self::Collective,
    ];

    /// The kind with this wire byte.
    pub fn from_wire(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// The byte on the wire.
    pub fn to_wire(self) -> u8 {
        self as u8
    }

    /// What it is counted as.
    pub fn class(self) -> FrameClass {
        match self {
            Self::Forward | Self::Backward | Self::EvalForward => FrameClass::Data,
            Self::Collective => FrameClass::Collective,
            _ => FrameClass::Control,
        }
    }

    /// Whether the frame stands for a lost micro-batch.
    pub fn is_poisoned(self) -> bool {
        matches!(self, Self::PoisonedForward | Self::PoisonedBackward)
    }

    /// Whether a frame of this kind may have a payload.
    pub fn has_payload(self) -> bool {
        !self.is_poisoned() && self != Self::Ready
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hello => "hello",
            Self::Ready => "ready",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::EvalForward => "eval-forward",
            Self::PoisonedForward => "poisoned-forward",
            Self::PoisonedBackward => "poisoned-backward",
            Self::Control => "control",
            Self::Abort => "abort",
            Self::Collective => "collective",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_bytes_are_the_positions() {
        for (position, kind) in FrameKind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.to_wire()), position);
            assert_eq!(FrameKind::from_wire(kind.to_wire()), Some(kind));
        }
        assert_eq!(FrameKind::from_wire(10), None);
    }
}
