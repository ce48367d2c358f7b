//! What travels between stages, as the engine sees it.

use std::fmt;
use std::time::Instant;

use thinwire_link::FrameKind;

use super::compute::HostTensor;
use super::error::PipelineError;

/// Which neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The stage before.
    Previous,
    /// The stage after.
    Next,
}

/// What names a frame within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameKey {
    /// What it carries.
    pub content: Content,
    /// The step, counted from 1.
    pub step: u64,
    /// The micro-batch, or for control frames their topic.
    pub index: u32,
}

/// What a frame carries. A poisoned frame stands for the tensor it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// An activation of training.
    Forward,
    /// A gradient.
    Backward,
    /// An activation of evaluation.
    Eval,
    /// A message of the engines.
    Control,
}

/// What a control message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Topic {
    /// Which checkpoint to start from.
    Resume = 0,
    /// The end of a step.
    Step = 1,
    /// The result of an evaluation.
    Eval = 2,
    /// The files of a checkpoint.
    Checkpoint = 3,
    /// That a checkpoint is on every stage's disk.
    Committed = 4,
    /// That every stage has restored its part of a checkpoint.
    Restored = 5,
}

impl FrameKey {
    /// The key of a control message.
    pub(crate) fn control(topic: Topic, step: u64) -> Self {
        Self { content: Content::Control, step, index: topic as u32 }
    }

    /// The key of a frame of this kind; `None` for those the engine never sees.
    pub(crate) fn of(kind: FrameKind, step: u64, index: u32) -> Option<Self> {
        let content = match kind {
            FrameKind::Forward | FrameKind::PoisonedForward => Content::Forward,
            FrameKind::Backward | FrameKind::PoisonedBackward => Content::Backward,
            FrameKind::EvalForward => Content::Eval,
            FrameKind::Control => Content::Control,
            FrameKind::Hello | FrameKind::Ready | FrameKind::Abort | FrameKind::Collective => return None,
        };
        Some(Self { content, step, index })
    }

    /// The kind of frame that carries this.
    pub(crate) fn kind(self) -> FrameKind {
        match self.content {
            Content::Forward => FrameKind::Forward,
            Content::Backward => FrameKind::Backward,
            Content::Eval => FrameKind::EvalForward,
            Content::Control => FrameKind::Control,
        }
    }

    /// The kind of frame that stands for a lost one; `None` where nothing may be lost.
    pub(crate) fn poisoned_kind(self) -> Option<FrameKind> {
        match self.content {
            Content::Forward => Some(FrameKind::PoisonedForward),
            Content::Backward => Some(FrameKind::PoisonedBackward),
            Content::Eval | Content::Control => None,
        }
    }
}

impl fmt::Display for FrameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, step, index } = self;
        match content {
            Content::Forward => write!(f, "the activation of step {step}, micro-batch {index}"),
            Content::Backward => write!(f, "the gradient of step {step}, micro-batch {index}"),
            Content::Eval => {
                write!(f, "the activation of the evaluation after step {step}, micro-batch {index}")
            }
            Content::Control => match index {
                0 => f.write_str("the agreement on a checkpoint"),
                1 => write!(f, "the end of step {step}"),
                2 => write!(f, "the result of the evaluation after step {step}"),
                3 => write!(f, "the checkpoint of step {step}"),
                4 => write!(f, "the end of the checkpoint of step {step}"),
                5 => f.write_str("the end of the resume"),
                _ => write!(f, "a message of unknown topic {index} in step {step}"),
            },
        }
    }
}

/// What a frame holds once it is decoded.
#[derive(Debug)]
pub(crate) enum Body {
    /// A tensor, and the fingerprint of the samples it was computed from.
    Tensor {
        /// The values.
        tensor: HostTensor,
        /// Fingerprint of the micro-batch.
        tag: u64,
    },
    /// The micro-batch is lost.
    Poisoned,
    /// A control message.
    Control(Vec<u8>),
}

/// What a link's threads hand to the engine.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A frame.
    Frame {
        /// The neighbour it came from.
        from: usize,
        /// Its name.
        key: FrameKey,
        /// Its content.
        body: Body,
        /// When the engine may see it: on a link with added latency, not at once.
        due: Instant,
    },
    /// The sender thread found a value that is not finite and sent a poisoned frame instead.
    Lost(PipelineError),
    /// A thread failed.
    Failed(PipelineError),
}
