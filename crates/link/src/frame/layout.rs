//! The header's bytes.

use thinwire_codec::{CodecId, DType, Shape};

use crate::{kind::FrameKind, run_id::RunId, wire::Reader};

use super::{FrameError, FrameHeader};

/// The version of everything `docs/protocol.md` defines.
pub const PROTOCOL_VERSION: u16 = 1;

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = *b"TWFR";

/// The length of magic and version, in bytes: the part that is the same in every version.
pub(crate) const PREFIX_LEN: usize = 6;

/// The length of a header, in bytes.
pub const HEADER_LEN: usize = 88;

/// The header without its own checksum, in bytes.
const CHECKED_LEN: usize = HEADER_LEN - 4;

/// A header as it travels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireHeader {
    pub(crate) header: FrameHeader,
    pub(crate) payload_checksum: u32,
}

/// Refuses other data, and other versions whatever follows in them.
pub(crate) fn check_prefix(prefix: [u8; PREFIX_LEN]) -> Result<(), FrameError> {
    let [m0, m1, m2, m3, v0, v1] = prefix;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(FrameError::Magic { found: [m0, m1, m2, m3] });
    }
    match u16::from_le_bytes([v0, v1]) {
        PROTOCOL_VERSION => Ok(()),
        found => Err(FrameError::Version { found }),
    }
}

/// Refuses a payload where the kind has none.
pub(crate) fn check_kind_has_payload(header: &FrameHeader) -> Result<(), FrameError> {
    if !header.kind.has_payload() && header.payload_len != 0 {
        return Err(FrameError::UnexpectedPayload { kind: header.kind, length: header.payload_len });
    }
    Ok(())
}

/// Refuses a payload with another checksum than the header names.
pub(crate) fn check_payload(wire: &WireHeader, payload: &[u8]) -> Result<(), FrameError> {
    let (stored, computed) = (wire.payload_checksum, crc32fast::hash(payload));
    if stored == computed { Ok(()) } else { Err(FrameError::PayloadChecksum { stored, computed }) }
}

impl WireHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let header = &self.header;
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend(MAGIC);
        bytes.extend(PROTOCOL_VERSION.to_le_bytes());
        bytes.push(header.kind.to_wire());
        bytes.push(dtype_to_wire(header.dtype));
        bytes.extend(header.run.0);
        bytes.extend(header.step.to_le_bytes());
        bytes.extend(header.micro_batch.to_le_bytes());
        bytes.push(header.codec.into());
        bytes.extend([0; 3]);
        for extent in [header.shape.samples, header.shape.tokens, header.shape.channels] {
            bytes.extend((extent as u64).to_le_bytes());
        }
        bytes.extend(header.tag.to_le_bytes());
        bytes.extend(header.payload_len.to_le_bytes());
        bytes.extend(self.payload_checksum.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.try_into().expect("the fields above are HEADER_LEN bytes")
    }

    /// Checks everything but the payload. The checksum comes right after the prefix, so that what is said of
    /// any later field was said by the sender.
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        check_prefix(reader.array("frame prefix")?)?;
        let computed = crc32fast::hash(&bytes[..CHECKED_LEN]);
        let stored = Reader::new(&bytes[CHECKED_LEN..]).u32("header checksum")?;
        if stored != computed {
            return Err(FrameError::HeaderChecksum { stored, computed });
        }
        let kind = parse_kind(reader.u8("kind")?)?;
        let dtype = parse_dtype(reader.u8("dtype")?)?;
        let run = RunId(reader.array("run id")?);
        let step = reader.u64("step")?;
        let micro_batch = reader.u32("micro-batch")?;
        let codec = parse_codec(reader.u8("codec")?)?;
        check_reserved(reader.array("reserved bytes")?)?;
        let shape = Shape {
            samples: extent(reader.u64("samples")?)?,
            tokens: extent(reader.u64("tokens")?)?,
            channels: extent(reader.u64("channels")?)?,
        };
        let tag = reader.u64("tag")?;
        let payload_len = reader.u64("payload length")?;
        let payload_checksum = reader.u32("payload checksum")?;
        let header = FrameHeader { run, step, micro_batch, kind, dtype, shape, codec, tag, payload_len };
        check_kind_has_payload(&header)?;
        Ok(Self { header, payload_checksum })
    }
}

fn dtype_to_wire(dtype: DType) -> u8 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::BF16 => 2,
    }
}

fn parse_dtype(byte: u8) -> Result<DType, FrameError> {
    match byte {
        0 => Ok(DType::F32),
        1 => Ok(DType::F16),
        2 => Ok(DType::BF16),
        _ => Err(unknown("dtype", byte, "0 (f32), 1 (f16) or 2 (bf16)")),
    }
}

fn parse_kind(byte: u8) -> Result<FrameKind, FrameError> {
    FrameKind::from_wire(byte).ok_or_else(|| unknown("frame kind", byte, "0 to 9"))
}

fn parse_codec(byte: u8) -> Result<CodecId, FrameError> {
    CodecId::try_from(byte).map_err(|byte| unknown("codec", byte, "a codec of this build"))
}

fn check_reserved(bytes: [u8; 3]) -> Result<(), FrameError> {
    match bytes.into_iter().find(|&byte| byte != 0) {
        None => Ok(()),
        Some(byte) => Err(unknown("reserved byte", byte, "0")),
    }
}

fn extent(value: u64) -> Result<usize, FrameError> {
    let expected = "a number that fits this machine's address space";
    usize::try_from(value).map_err(|_| FrameError::Field { field: "tensor extent", found: value, expected })
}

fn unknown(field: &'static str, byte: u8, expected: &'static str) -> FrameError {
    FrameError::Field { field, found: u64::from(byte), expected }
}
