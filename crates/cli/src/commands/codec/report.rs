//! What the codec commands say about a message.

use std::fmt;

use serde::Serialize;
use thinwire_codec::CodecSpec;

use crate::tensor::Tensor;

/// A tensor and its message.
#[derive(Debug, Serialize)]
pub(super) struct Packed {
    codec: CodecSpec,
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
    pub(super) fn new(codec: CodecSpec, name: String, tensor: &Tensor, bytes: usize) -> Self {
        let elements = tensor.dims().iter().product();
        let bits_per_element = (elements > 0).then(|| bytes as f64 * 8.0 / elements as f64);
        let shape = tensor.dims().to_vec();
        Self { codec, tensor: name, dtype: tensor.dtype().name(), shape, elements, bytes, bits_per_element }
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "codec    {}", self.codec)?;
        writeln!(f, "tensor   {} {:?} {}, {} elements", self.tensor, self.shape, self.dtype, self.elements)?;
        write!(f, "message  {} bytes", self.bytes)?;
        match self.bits_per_element {
            Some(bits) => write!(f, ", {bits:.3} bits an element"),
            None => Ok(()),
        }
    }
}
