//! Codec messages in files.
//!
//! A file is two frames of the link protocol (`docs/protocol.md`), with a run id of zeros: a control frame
//! whose payload is JSON, the tensor's name, shape and codec settings, then a forward frame with the message
//! itself. Frames on a link need no such description: there the handshake has settled the settings.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thinwire_codec::{CodecError, CodecSpec, DType, DecodeError, Execution, SpecError};
use thinwire_link::{Frame, FrameError, FrameHeader, FrameKind, RunId};

use crate::files::{self, FileError};
use crate::tensor::{self, Tensor};

/// A message and what is needed to decode it.
#[derive(Debug, PartialEq)]
pub(crate) struct MessageFile {
    pub(crate) description: Description,
    pub(crate) dtype: DType,
    pub(crate) message: Vec<u8>,
}

/// The payload of the first frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The tensor's name.
    pub(crate) tensor: String,
    /// Its dimensions, of any rank.
    pub(crate) shape: Vec<usize>,
    /// The codec and all its settings.
    pub(crate) codec: CodecSpec,
}

/// A message file that could not be read, written or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not a usable message file", path.display())]
    Unusable { path: PathBuf, source: Fault },
}

/// What is wrong with a message file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it has a {found} frame where a {expected} frame belongs")]
    Kind { found: FrameKind, expected: FrameKind },
    #[error("its description cannot be read")]
    Description(#[from] serde_json::Error),
    #[error("its description speaks of {described}, its frame of {framed}")]
    Disagree { described: String, framed: String },
    #[error(transparent)]
    Shape(#[from] CodecError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl MessageFile {
    pub(crate) fn read(path: &Path) -> Result<Self, MessageFileError> {
        Self::parse(&files::read(path)?).map_err(|source| unusable(path, source))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), MessageFileError> {
        let bytes = self.to_bytes().map_err(|source| unusable(path, source))?;
        Ok(files::write(path, &bytes)?)
    }

    /// The tensor that the message holds; `path` is for errors.
    pub(crate) fn decode(&self, path: &Path) -> Result<Tensor, MessageFileError> {
        self.decode_tensor().map_err(|source| unusable(path, source))
    }

    fn decode_tensor(&self) -> Result<Tensor, Fault> {
        let Description { shape, codec, .. } = &self.description;
        let mut codec = codec.build_memoryless(Execution::choose()?)?;
        // The length is compared before memory is taken for a tensor that the file only claims to hold.
        let (size, got) = (codec.packed_size(tensor::codec_shape(shape)?, self.dtype)?, self.message.len());
        if !size.admits(got) {
            return Err(DecodeError::Length { expected: size.bound(), got }.into());
        }
        let mut tensor = Tensor::zeros(shape.clone(), self.dtype)?;
        codec.decode(&self.message, tensor.view_mut()?)?;
        Ok(tensor)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        let text = serde_json::to_vec(&self.description)?;
        let run = RunId([0; 16]);
        let shape = tensor::codec_shape(&self.description.shape)?;
        let control = FrameHeader::without_tensor(run, FrameKind::Control, 0, 0, text.len() as u64);
        let forward = FrameHeader {
            kind: FrameKind::Forward,
            dtype: self.dtype,
            shape,
            codec: self.description.codec.sent_as(shape, self.dtype),
            payload_len: self.message.len() as u64,
            ..control
        };
        let mut bytes = Frame { header: control, payload: &text }.to_bytes()?;
        bytes.extend(Frame { header: forward, payload: &self.message }.to_bytes()?);
        Ok(bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (control, rest) = Frame::split_first(bytes)?;
        check_kind(&control, FrameKind::Control)?;
        let description: Description = serde_json::from_slice(control.payload)?;
        let forward = Frame::parse(rest)?;
        check_kind(&forward, FrameKind::Forward)?;
        let (shape, dtype) = (tensor::codec_shape(&description.shape)?, forward.header.dtype);
        let described = (shape, description.codec.sent_as(shape, dtype));
        let framed = (forward.header.shape, forward.header.codec);
        if described != framed {
            let text = |(shape, codec)| format!("{codec} {shape}");
            return Err(Fault::Disagree { described: text(described), framed: text(framed) });
        }
        Ok(Self { description, dtype, message: forward.payload.to_vec() })
    }
}

fn check_kind(frame: &Frame<'_>, expected: FrameKind) -> Result<(), Fault> {
    let found = frame.header.kind;
    if found == expected { Ok(()) } else { Err(Fault::Kind { found, expected }) }
}

fn unusable(path: &Path, source: Fault) -> MessageFileError {
    MessageFileError::Unusable { path: path.into(), source }
}
