//! A boundary without a link.

use thinwire_codec::{
    Codec, CodecSpec, DType, ErrorStats, Execution, Shape, SpecError, TensorView, TensorViewMut,
};

use super::EvaluateError;
use crate::pipeline::HostTensor;

/// A codec between two parts of the model, and what has passed it.
#[derive(Debug)]
pub struct Boundary {
    before: usize,
    codec: Box<dyn Codec>,
    message: Vec<u8>,
    bytes: u64,
    messages: u64,
    raw_messages: u64,
    error: ErrorStats,
}

impl Boundary {
    /// The boundary in front of block `before`; the number of blocks means in front of the head.
    ///
    /// # Errors
    /// A setting of the codec is out of its range.
    pub fn new(before: usize, codec: &CodecSpec) -> Result<Self, SpecError> {
        // An evaluation sees every sample once.
        let codec = codec.build_memoryless(Execution::choose()?)?;
        let error = ErrorStats::default();
        Ok(Self { before, codec, message: Vec::new(), bytes: 0, messages: 0, raw_messages: 0, error })
    }

    /// The block behind the boundary.
    pub fn before(&self) -> usize {
        self.before
    }

    /// The codec.
    pub fn codec(&self) -> CodecSpec {
        self.codec.spec()
    }

    /// Bytes that the codec made of everything so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bits that the codec spent on an element so far; NaN before the first.
    pub fn bits_per_element(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.error.elements as f64
    }

    /// Messages so far, and those of tensors below the codec's `raw_below` among them, which were sent raw.
    pub fn messages(&self) -> (u64, u64) {
        (self.messages, self.raw_messages)
    }

    /// `sum (decoded - x)^2 / sum x^2` over all elements so far.
    pub fn rel_sq_error(&self) -> f64 {
        self.error.rel_sq_error()
    }

    /// Encodes and decodes the activation of micro-batch `micro_batch`.
    pub(crate) fn pass(
        &mut self,
        mut h: HostTensor,
        micro_batch: usize,
    ) -> Result<HostTensor, EvaluateError> {
        let before = self.before;
        let shape = Shape::new(h.shape[0], h.shape[1], h.shape[2]);
        let unfit = |source| EvaluateError::Shape { before, source };
        let x = TensorView::new(shape, h.values.as_slice()).map_err(unfit)?;
        let bound = self.codec.packed_size(shape, DType::F32).map_err(unfit)?.bound();
        if self.message.len() < bound {
            self.message.resize(bound, 0);
        }
        let length = self.codec.encode(x, &mut self.message);
        let length = length.map_err(|source| EvaluateError::Encode { before, micro_batch, source })?;
        let message = &self.message[..length];
        let undone = |source| EvaluateError::Decode { before, micro_batch, source };
        let error = self.codec.measure(x, message).map_err(undone)?;
        let out = TensorViewMut::new(shape, h.values.as_mut_slice()).map_err(unfit)?;
        self.codec.decode(message, out).map_err(undone)?;
        self.error.merge(&error);
        self.bytes += length as u64;
        self.messages += 1;
        self.raw_messages += u64::from(self.codec.spec().sends_raw(shape));
        Ok(h)
    }
}
