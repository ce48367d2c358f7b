//! What stops a stage.

use std::time::Duration;

use thinwire_codec::{CodecError, DecodeError, EncodeError};
use thinwire_collective::CollectiveError;
use thinwire_link::LinkError;

use super::frames::FrameKey;
use crate::data::DataError;

/// Why a stage stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// A link failed, or the neighbour behind it stopped.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Tokenized data that cannot be read any more.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Somebody [asked](super::Stop::ask) for the end.
    #[error("stopped by {by}")]
    Stopped {
        /// Who asked.
        by: String,
    },
    /// Nothing came from a neighbour that owes a frame.
    #[error("stage {peer} sent nothing for {:.1} s while {frame} was awaited", .waited.as_secs_f64())]
    Silent {
        /// The neighbour.
        peer: usize,
        /// What it owes.
        frame: FrameKey,
        /// The deadline that passed.
        waited: Duration,
    },
    /// A neighbour sent what it does not owe: of another step, or what it had sent before.
    #[error("stage {peer} sent {frame} in step {step}, where it is not expected")]
    Unexpected {
        /// The neighbour.
        peer: usize,
        /// What it sent.
        frame: FrameKey,
        /// The step this stage is in.
        step: u64,
    },
    /// A frame whose tensor cannot belong here.
    #[error("{frame} from stage {peer}: {what} is {found}, expected {expected}")]
    Mismatch {
        /// The neighbour.
        peer: usize,
        /// The frame.
        frame: FrameKey,
        /// Which property differs.
        what: &'static str,
        /// Its value in the frame.
        found: String,
        /// The value needed.
        expected: String,
    },
    /// A value that is NaN or infinite, found before anything was packed.
    #[error("stage {stage}: value {value} at index {index} of {frame} to stage {peer} is not finite")]
    NotFinite {
        /// The stage that computed it.
        stage: usize,
        /// The stage it was meant for.
        peer: usize,
        /// The frame it would have left in.
        frame: FrameKey,
        /// Its position in the flat tensor.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The loss of a micro-batch is not finite.
    #[error("stage {stage}: {frame} gives a loss of {loss}")]
    LossNotFinite {
        /// The last stage.
        stage: usize,
        /// The activation that the loss was computed from.
        frame: FrameKey,
        /// NaN or an infinity.
        loss: f64,
    },
    /// The ranks of a stage could not add something up.
    #[error("stage {stage}: its ranks cannot add up")]
    Ranks {
        /// The stage.
        stage: usize,
        /// What the rank that it began with says.
        source: CollectiveError,
    },
    /// A rank of a stage is not there any more.
    #[error("stage {stage}: rank {rank} has ended: {reason}")]
    RankEnded {
        /// The stage.
        stage: usize,
        /// The rank.
        rank: usize,
        /// What its panic says.
        reason: String,
    },
    /// A parameter's gradient is not finite.
    #[error("stage {stage}: the gradient of {parameter} is not finite in step {step}")]
    GradientNotFinite {
        /// The stage that owns the parameter.
        stage: usize,
        /// Its name.
        parameter: String,
        /// The step.
        step: u64,
    },
    /// Skipping steps did not help.
    #[error("{count} steps in a row were skipped, the last because {reason}")]
    AllSkipped {
        /// How many.
        count: u32,
        /// What was wrong in the last one.
        reason: String,
    },
    /// The two copies of a tied matrix differ.
    #[error(
        "after step {step} the tied matrices differ: checksum {embedding:08x} at the embedding, {head:08x} at the head"
    )]
    TiedDiffer {
        /// Steps done.
        step: u64,
        /// CRC-32 of the first stage's copy.
        embedding: u32,
        /// CRC-32 of the last stage's copy.
        head: u32,
    },
    /// The first stage did not send its share of a tied matrix's gradient.
    #[error("the first stage sent no share of the tied matrix's gradient")]
    TiedMissing,
    /// A share of a tied matrix's gradient that is not of the length that the matrix and the codec ask for.
    #[error(
        "stage {peer}'s share of the tied matrix's gradient in step {step} has {found} bytes, expected {expected}"
    )]
    TiedLength {
        /// The stage at the matrix's other end.
        peer: usize,
        /// The step.
        step: u64,
        /// Bytes that came.
        found: usize,
        /// Bytes of such a share.
        expected: usize,
    },
    /// A message could not be encoded.
    #[error("cannot encode {frame} for stage {peer}")]
    Encode {
        /// The receiver.
        peer: usize,
        /// The frame.
        frame: FrameKey,
        /// What the codec says.
        source: EncodeError,
    },
    /// A message could not be decoded.
    #[error("cannot decode {frame} from stage {peer}")]
    Decode {
        /// The sender.
        peer: usize,
        /// The frame.
        frame: FrameKey,
        /// What the codec says.
        source: DecodeError,
    },
    /// A shape or setting the codec cannot take.
    #[error("the codec cannot take {frame}")]
    Codec {
        /// The frame.
        frame: FrameKey,
        /// What the codec says.
        source: CodecError,
    },
    /// An end-of-step message that cannot be read.
    #[error("{frame} from stage {peer} cannot be read")]
    Control {
        /// The sender.
        peer: usize,
        /// The frame.
        frame: FrameKey,
        /// What the decoder says.
        source: postcard::Error,
    },
}

impl PipelineError {
    /// Whether ranks found a value that is not finite where they were to add up: they are well, and can be joined anew.
    pub(super) fn is_of_ranks_not_finite(&self) -> bool {
        matches!(self, Self::Ranks { source: CollectiveError::NonFinite { .. }, .. })
    }
}
