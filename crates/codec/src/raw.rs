use std::fmt;

use half::{bf16, f16};

use crate::element::Element;
use crate::message::Payload;
use crate::scale::MessageScale;
use crate::spec::Fields;
use crate::{CodecError, CodecSpec, DType, DecodeError, Shape, SpecError};

/// Values converted at once, on the stack.
const BLOCK: usize = 256;

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

    fn encode<E: Element>(&mut self, _: &usize, x: &[E], scale: MessageScale, out: &mut [u8]) {
        match self.0.dtype {
            DType::F32 => encode_as::<E, f32>(x, scale, out),
            DType::F16 => encode_as::<E, f16>(x, scale, out),
            DType::BF16 => encode_as::<E, bf16>(x, scale, out),
        }
    }

    fn decode<E: Element>(
        &mut self,
        _: &usize,
        payload: &[u8],
        scale: MessageScale,
        out: &mut [E],
    ) -> Result<(), DecodeError> {
        match self.0.dtype {
            DType::F32 => decode_as::<f32, E>(payload, scale, out),
            DType::F16 => decode_as::<f16, E>(payload, scale, out),
            DType::BF16 => decode_as::<bf16, E>(payload, scale, out),
        }
    }
}

/// Memory format `E` to wire format `W`.
fn encode_as<E: Element, W: Element>(x: &[E], scale: MessageScale, out: &mut [u8]) {
    let mut floats = [0.0; BLOCK];
    let mut wire = [W::default(); BLOCK];
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK * W::DTYPE.size())) {
        let (floats, wire) = (&mut floats[..x.len()], &mut wire[..x.len()]);
        E::widen(x, floats);
        scale.apply(floats);
        W::narrow(floats, wire);
        W::write(wire, out);
    }
}

/// Wire format `W` to memory format `E`. Each block is checked before any of it is stored.
fn decode_as<W: Element, E: Element>(
    payload: &[u8],
    scale: MessageScale,
    out: &mut [E],
) -> Result<(), DecodeError> {
    let mut floats = [0.0; BLOCK];
    let mut wire = [W::default(); BLOCK];
    for (block, (bytes, out)) in
        payload.chunks(BLOCK * W::DTYPE.size()).zip(out.chunks_mut(BLOCK)).enumerate()
    {
        let (floats, wire) = (&mut floats[..out.len()], &mut wire[..out.len()]);
        W::read(bytes, wire);
        let max_abs = W::max_abs(wire);
        W::widen(wire, floats);
        if !max_abs.is_finite() {
            let bad = floats.iter().position(|value| !value.is_finite()).expect("the maximum was not finite");
            return Err(DecodeError::NonFinite { index: block * BLOCK + bad });
        }
        // The wire's own rounding may have led up to the limit, but not beyond.
        let magnitude = scale.unscaled(max_abs);
        if magnitude > E::DTYPE.overflow() {
            return Err(DecodeError::Range { magnitude, dtype: E::DTYPE });
        }
        scale.undo(floats);
        E::narrow(floats, out);
    }
    Ok(())
}
