//! What the codec commands say about a message.

use std::fmt;

use serde::Serialize;
use thinwire_codec::{CodecError, CodecSpec};

use crate::tensor::{self, Tensor};

/// A tensor and its message.
#[derive(Debug, Serialize)]
pub(super) struct Packed {
    codec: CodecSpec,
    /// Another than the codec's for a tensor below its `raw_below`.
    sent_as: &'static str,
    tensor: String,
    dtype: &'static str,
    shape: Vec<usize>,
    elements: usize,
    /// Of the message.
    bytes: usize,
    /// Absent for a tensor without elements.
    bits_per_element: Option<f64>,
}

impl Packed {
    pub(super) fn new(
        codec: CodecSpec,
        name: String,
        tensor: &Tensor,
        bytes: usize,
    ) -> Result<Self, CodecError> {
        let elements = tensor.dims().iter().product();
        let bits_per_element = (elements > 0).then(|| bytes as f64 * 8.0 / elements as f64);
        Ok(Self {
            codec,
            sent_as: codec.sent_as(tensor::codec_shape(tensor.dims())?, tensor.dtype()).name(),
            tensor: name,
            dtype: tensor.dtype().name(),
            shape: tensor.dims().to_vec(),
            elements,
            bytes,
            bits_per_element,
        })
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "codec    {}", self.codec)?;
        writeln!(f, "tensor   {} {:?} {}, {} elements", self.tensor, self.shape, self.dtype, self.elements)?;
        write!(f, "message  {}, {} bytes", self.sent_as, self.bytes)?;
        match self.bits_per_element {
            Some(bits) => write!(f, ", {bits:.3} bits an element"),
            None => Ok(()),
        }
    }
}
