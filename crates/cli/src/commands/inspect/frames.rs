//! Frames in files, and the codec messages that `thinwire codec encode` writes.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thinwire_codec::{CodecError, HEADER_LEN};
use thinwire_link::{Frame, FrameError, FrameHeader, FrameKind, RunId};

use crate::error::CommandError;
use crate::files;
use crate::message_file::{Description, MessageFile};

/// Frames shown as text; a captured stream may have millions.
const SHOWN: usize = 20;

/// The frames of a file; there is no report unless all their checksums hold.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    path: PathBuf,
    bytes: usize,
    frames: Vec<FrameReport>,
    message: Option<MessageReport>,
}

#[derive(Debug, Serialize)]
struct FrameReport {
    kind: String,
    run: RunId,
    step: u64,
    micro_batch: u32,
    dtype: &'static str,
    shape: [usize; 3],
    codec: &'static str,
    tag: String,
    payload_bytes: u64,
}

/// A whole tensor and what is needed to decode it.
#[derive(Debug, Serialize)]
struct MessageReport {
    #[serde(flatten)]
    description: Description,
    dtype: &'static str,
    elements: usize,
    bytes: usize,
    /// Absent for a tensor without elements.
    bits_per_element: Option<f64>,
    /// `k`: the values were divided by `2^k`.
    scale_exponent: Option<i16>,
    /// Whether it was decoded, without an error.
    decoded: bool,
}

/// A file that is not frames throughout.
#[derive(Debug, thiserror::Error)]
#[error("{}: the frame at byte {at}", path.display())]
struct BadFrame {
    path: PathBuf,
    at: usize,
    source: FrameError,
}

pub(super) fn report(path: &Path, verify: bool) -> Result<Report, CommandError> {
    let bytes = files::read(path)?;
    let frames = split(&bytes, path)?;
    let kinds: Vec<FrameKind> = frames.iter().map(|header| header.kind).collect();
    let is_message = kinds == [FrameKind::Control, FrameKind::Forward] && frames[0].run == RunId([0; 16]);
    let message = is_message.then(|| MessageReport::read(path, verify)).transpose()?;
    let kind = if is_message { "message" } else { "frames" };
    let frames = frames.iter().map(FrameReport::new).collect();
    Ok(Report { kind, path: path.into(), bytes: bytes.len(), frames, message })
}

fn split(bytes: &[u8], path: &Path) -> Result<Vec<FrameHeader>, BadFrame> {
    let mut headers = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let split = Frame::split_first(rest);
        let (frame, behind) = split.map_err(|source| BadFrame { path: path.into(), at, source })?;
        headers.push(frame.header);
        rest = behind;
    }
    Ok(headers)
}

impl FrameReport {
    fn new(header: &FrameHeader) -> Self {
        let shape = header.shape;
        Self {
            kind: header.kind.to_string(),
            run: header.run,
            step: header.step,
            micro_batch: header.micro_batch,
            dtype: header.dtype.name(),
            shape: [shape.samples, shape.tokens, shape.channels],
            codec: header.codec.name(),
            tag: format!("{:016x}", header.tag),
            payload_bytes: header.payload_len,
        }
    }
}

impl MessageReport {
    fn read(path: &Path, verify: bool) -> Result<Self, CommandError> {
        let file = MessageFile::read(path)?;
        if verify {
            file.decode(path)?;
        }
        let bytes = file.message.len();
        let elements = elements(&file)?;
        let scale = file.message.first_chunk::<HEADER_LEN>();
        Ok(Self {
            dtype: file.dtype.name(),
            elements,
            bytes,
            bits_per_element: (elements > 0).then(|| bytes as f64 * 8.0 / elements as f64),
            scale_exponent: scale.map(|&[_, _, low, high]| i16::from_le_bytes([low, high])),
            decoded: verify,
            description: file.description,
        })
    }
}

fn elements(file: &MessageFile) -> Result<usize, CodecError> {
    crate::tensor::codec_shape(&file.description.shape)?.elements()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, count) = (self.path.display(), self.frames.len());
        write!(f, "{path}: {}, {count} frames, {} bytes, checksums hold", self.kind, self.bytes)?;
        if let Some(message) = &self.message {
            write!(f, "\n{message}")?;
        }
        for frame in self.frames.iter().take(SHOWN) {
            write!(f, "\n{frame}")?;
        }
        match count.saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl fmt::Display for FrameReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, run, step, micro_batch, dtype, shape, codec, tag, payload_bytes } = self;
        write!(f, "  {kind}: run {run}, step {step}, micro-batch {micro_batch}, tag {tag}, ")?;
        write!(f, "{codec} of {dtype} {shape:?}, {payload_bytes} bytes")
    }
}

impl fmt::Display for MessageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { tensor, shape, codec } = &self.description;
        let (dtype, elements) = (self.dtype, self.elements);
        writeln!(f, "  tensor   {} {shape:?} {dtype}, {elements} elements", tensor.escape_debug())?;
        writeln!(f, "  codec    {codec}")?;
        write!(f, "  message  {} bytes", self.bytes)?;
        if let Some(bits) = self.bits_per_element {
            write!(f, ", {bits:.3} bits an element")?;
        }
        if let Some(exponent) = self.scale_exponent {
            write!(f, ", scale 2^{exponent}")?;
        }
        f.write_str(if self.decoded { ", decodes" } else { "" })
    }
}
