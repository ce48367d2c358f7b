use std::fmt;

use half::{bf16, f16};

use crate::element::Element;
use crate::kernel::convert::Convert;
use crate::kernel::scan::MaxAbs;
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::spec::Fields;
use crate::threads::{FirstError, Workers};
use crate::{CodecError, CodecSpec, DType, DecodeError, Isa, Shape, SpecError};

/// Values converted at once, on the stack.
const BLOCK: usize = 1024;

/// Uncompressed values: `raw:dtype=f32|f16|bf16`, or the format's name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSettings {
    /// The number format on the wire.
    pub dtype: DType,
}

impl Default for RawSettings {
    fn default() -> Self {
        Self { dtype: DType::F32 }
    }
}

impl RawSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["dtype"];

    pub(crate) fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        let dtype = fields.text("dtype").map_or(Ok(Self::default().dtype), str::parse)?;
        Ok(Self { dtype })
    }
}

impl fmt::Display for RawSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raw:dtype={}", self.dtype)
    }
}

/// The payload of raw messages: the values, rounded to the wire's format.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) RawSettings);

impl Payload for Raw {
    /// Bytes of the payload.
    type Layout = usize;

    fn spec(&self) -> CodecSpec {
        CodecSpec::Raw(self.0)
    }

    fn layout(&self, shape: Shape) -> Result<usize, CodecError> {
        shape.elements()?.checked_mul(self.0.dtype.size()).ok_or(CodecError::TooLarge { shape })
    }

    fn len(layout: &usize) -> usize {
        *layout
    }

    /// Only narrowing to f16 loses range, so only there values are scaled.
    fn scale(&self, dtype: DType, max_abs: f32) -> MessageScale {
        match (self.0.dtype, dtype) {
            (DType::F16, DType::F32 | DType::BF16) => MessageScale::of(max_abs),
            _ => MessageScale::ONE,
        }
    }

    fn check_scale(&self, scale: MessageScale) -> Result<(), DecodeError> {
        if self.0.dtype == DType::F16 || scale == MessageScale::ONE {
            Ok(())
        } else {
            Err(DecodeError::Scale { got: scale.exponent(), min: 0, max: 0 })
        }
    }

    fn encode<E: Element>(
        &mut self,
        workers: &Workers,
        _: &usize,
        x: &[E],
        scale: MessageScale,
        out: &mut [u8],
    ) {
        match self.0.dtype {
            DType::F32 => encode_as::<E, f32>(workers, x, scale, out),
            DType::F16 => encode_as::<E, f16>(workers, x, scale, out),
            DType::BF16 => encode_as::<E, bf16>(workers, x, scale, out),
        }
    }

    fn decode<E: Element>(
        &mut self,
        workers: &Workers,
        _: &usize,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        match self.0.dtype {
            DType::F32 => decode_as::<f32, E>(workers, payload, scale, out),
            DType::F16 => decode_as::<f16, E>(workers, payload, scale, out),
            DType::BF16 => decode_as::<bf16, E>(workers, payload, scale, out),
        }
    }
}

/// Memory format `E` to wire format `W`.
fn encode_as<E: Element, W: Element>(workers: &Workers, x: &[E], scale: MessageScale, out: &mut [u8]) {
    let part = part(workers, x.len());
    let parts = x.chunks(part).zip(out.chunks_mut(part * W::DTYPE.size()));
    workers.for_each(parts, |(x, out)| {
        if E::DTYPE == W::DTYPE {
            return E::write(x, out);
        }
        let mut wire = [W::default(); BLOCK];
        for (x, bytes) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK * W::DTYPE.size())) {
            let wire = &mut wire[..x.len()];
            workers.isa.run(Convert { x, scale: scale.scaling(), out: &mut *wire });
            W::write(wire, bytes);
        }
    });
}

/// Wire format `W` to memory format `E`.
fn decode_as<W: Element, E: Element>(
    workers: &Workers,
    payload: &[u8],
    scale: MessageScale,
    out: &mut [E],
) -> Result<(), DecodeError> {
    let part = part(workers, out.len());
    let parts = payload.chunks(part * W::DTYPE.size()).zip(out.chunks_mut(part));
    let error = FirstError::default();
    workers.for_each(parts.enumerate(), |(i, (bytes, out))| {
        error.note(i, decode_part::<W, E>(workers.isa, i * part, bytes, scale, out));
    });
    error.into_result()
}

/// Decodes the values from `first` on. Each block is checked before any of it is stored.
fn decode_part<W: Element, E: Element>(
    isa: Isa,
    first: usize,
    payload: &[u8],
    scale: MessageScale,
    out: &mut [E],
) -> Result<(), DecodeError> {
    let mut wire = [W::default(); BLOCK];
    let blocks = payload.chunks(BLOCK * W::DTYPE.size()).zip(out.chunks_mut(BLOCK));
    for (block, (bytes, out)) in blocks.enumerate() {
        let wire = &mut wire[..out.len()];
        W::read(bytes, wire);
        let max_abs = isa.run(MaxAbs(&*wire));
        if !max_abs.is_finite() {
            let bad = wire
                .iter()
                .position(|value| !value.to_f32().is_finite())
                .expect("the maximum was not finite");
            return Err(DecodeError::NonFinite { index: first + block * BLOCK + bad });
        }
        // The wire's own rounding may have led up to the limit, but not beyond.
        let magnitude = scale.unscaled(max_abs);
        if magnitude > E::DTYPE.overflow() {
            return Err(DecodeError::Range { magnitude, dtype: E::DTYPE });
        }
        isa.run(Convert { x: &*wire, scale: scale.unscaling(), out });
    }
    Ok(())
}

/// Values of the part of a message that each thread gets: whole blocks.
fn part(workers: &Workers, values: usize) -> usize {
    values.div_ceil(workers.worth(values)).next_multiple_of(BLOCK)
}
