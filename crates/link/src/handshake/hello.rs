//! The first frame: who speaks, and on what terms.

use crate::{frame::FrameError, kind::FrameKind, run_id::RunId, wire::Reader};

use super::{Terms, TermsError};

/// The longest payload of a hello, in bytes: both ends write theirs before they read, so it has to fit the
/// smallest socket buffers. What is longer is compared by its hash.
pub const LONGEST_HELLO: usize = 32 * 1024;

/// What one end says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The run.
    pub run: RunId,
    /// The speaker's stage, from 0.
    pub stage: u32,
    /// The stage that it wants at the other end.
    pub peer_stage: u32,
    /// The number of stages.
    pub stages: u32,
    /// What has to be equal.
    pub terms: Terms,
}

/// A hello that cannot be sent or understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// Our own terms are too long.
    #[error("our terms take {length} bytes, a hello has at most {LONGEST_HELLO}; use hashes")]
    TooLong {
        /// Their length in bytes.
        length: usize,
    },
    /// The bytes end early, or go on after the end.
    #[error(transparent)]
    Layout(#[from] FrameError),
    /// A name or value is not text.
    #[error("the {what} of term {index} is not UTF-8")]
    NotText {
        /// Name or value.
        what: &'static str,
        /// Which term, from 0.
        index: u32,
    },
    /// A name occurs twice.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Something else came.
    #[error("a {found} frame came where {expected} was expected")]
    OtherKind {
        /// What should have come.
        expected: FrameKind,
        /// What came.
        found: FrameKind,
    },
}

impl Hello {
    /// The payload of the hello frame; the run is in the frame's header.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, HelloError> {
        let mut bytes = Vec::new();
        for number in [self.stage, self.peer_stage, self.stages, self.terms.iter().len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        for text in self.terms.iter().flat_map(|(name, value)| [name, value]) {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        if bytes.len() > LONGEST_HELLO {
            return Err(HelloError::TooLong { length: bytes.len() });
        }
        Ok(bytes)
    }

    /// The hello that a frame of `run` with this payload is. Nothing is allocated beyond the payload's own size.
    pub(crate) fn parse(run: RunId, payload: &[u8]) -> Result<Self, HelloError> {
        let mut reader = Reader::new(payload);
        let stage = reader.u32("stage")?;
        let peer_stage = reader.u32("stage of the peer")?;
        let stages = reader.u32("number of stages")?;
        let count = reader.u32("number of terms")?;
        let mut terms = Terms::new();
        for index in 0..count {
            let name = parse_text(&mut reader, "name", index)?;
            let value = parse_text(&mut reader, "value", index)?;
            terms.add(name, value)?;
        }
        reader.finish()?;
        Ok(Self { run, stage, peer_stage, stages, terms })
    }
}

fn parse_text<'a>(reader: &mut Reader<'a>, what: &'static str, index: u32) -> Result<&'a str, HelloError> {
    let length = reader.u32("length of a term")?;
    let bytes = reader.take(length as usize, "text of a term")?;
    std::str::from_utf8(bytes).map_err(|_| HelloError::NotText { what, index })
}
