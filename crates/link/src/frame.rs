//! The frame: a header of fixed layout and a payload. Pure functions over bytes.
//!
//! `docs/protocol.md` has the layout as a table.

mod error;
mod layout;
#[cfg(test)]
mod tests;

pub use error::FrameError;
pub use layout::{HEADER_LEN, MAGIC, PROTOCOL_VERSION};
pub(crate) use layout::{PREFIX_LEN, WireHeader, check_payload, check_prefix};

use thinwire_codec::{CodecId, DType, Shape};

use crate::{error::FrameName, kind::FrameKind, run_id::RunId, wire::Reader};

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The run it belongs to.
    pub run: RunId,
    /// The optimizer step, from 0.
    pub step: u64,
    /// The micro-batch within the step, from 0.
    pub micro_batch: u32,
    /// What it is for.
    pub kind: FrameKind,
    /// The format of the tensor's values before encoding; `F32` where there is no tensor.
    pub dtype: DType,
    /// The tensor's shape, `[samples, tokens, channels]`; all 0 where there is no tensor.
    pub shape: Shape,
    /// The codec of the payload; `RawF32` where there is no tensor.
    pub codec: CodecId,
    /// Free for the user: a fingerprint of the samples, so that both ends know that they speak of the same ones.
    pub tag: u64,
    /// The payload's length in bytes.
    pub payload_len: u64,
}

impl FrameHeader {
    /// The header of a frame that carries no tensor.
    pub fn without_tensor(
        run: RunId,
        kind: FrameKind,
        step: u64,
        micro_batch: u32,
        payload_len: u64,
    ) -> Self {
        Self {
            run,
            step,
            micro_batch,
            kind,
            dtype: DType::F32,
            shape: Shape::new(0, 0, 0),
            codec: CodecId::RawF32,
            tag: 0,
            payload_len,
        }
    }

    /// Which frame it is.
    pub fn name(&self) -> FrameName {
        FrameName { kind: self.kind, step: self.step, micro_batch: self.micro_batch }
    }

    /// The bytes of the header on the wire, both checksums included.
    ///
    /// # Errors
    /// [`FrameError::LengthMismatch`] if `payload` is not `payload_len` long, and
    /// [`FrameError::UnexpectedPayload`] if the kind has none.
    pub fn encode(&self, payload: &[u8]) -> Result<[u8; HEADER_LEN], FrameError> {
        if self.payload_len != payload.len() as u64 {
            return Err(FrameError::LengthMismatch {
                header: self.payload_len,
                payload: payload.len() as u64,
            });
        }
        layout::check_kind_has_payload(self)?;
        Ok(WireHeader { header: *self, payload_checksum: crc32fast::hash(payload) }.encode())
    }
}

/// A whole frame over borrowed bytes, for frames that live in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it says of itself.
    pub header: FrameHeader,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that `bytes` are, checksums verified; nothing may follow it.
    ///
    /// # Errors
    /// [`FrameError`] names the field that is wrong, what was expected and what was found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match Self::split_first(bytes)? {
            (frame, []) => Ok(frame),
            (_, rest) => Err(FrameError::TrailingBytes { extra: rest.len() as u64 }),
        }
    }

    /// The frame that `bytes` begin with, checksums verified, and the bytes after it.
    ///
    /// # Errors
    /// As [`Frame::parse`].
    pub fn split_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FrameError> {
        let mut reader = Reader::new(bytes);
        check_prefix(Reader::new(bytes).array("frame prefix")?)?;
        let wire = WireHeader::parse(&reader.array("frame header")?)?;
        let header = wire.header;
        // A length that does not fit the address space is longer than the bytes at hand.
        let length = usize::try_from(header.payload_len).unwrap_or(usize::MAX);
        let payload = reader.take(length, "frame payload")?;
        check_payload(&wire, payload)?;
        Ok((Self { header, payload }, &bytes[HEADER_LEN + length..]))
    }

    /// The frame's bytes.
    ///
    /// # Errors
    /// As [`FrameHeader::encode`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameError> {
        let mut bytes = self.header.encode(self.payload)?.to_vec();
        bytes.extend_from_slice(self.payload);
        Ok(bytes)
    }
}
