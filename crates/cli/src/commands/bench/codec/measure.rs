//! One line of the bench.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;
use thinwire_codec::{Codec, CodecSpec, Execution, RawSettings, TensorView, TensorViewMut};

use super::tensor::Tensor;
use crate::error::CommandError;

/// What one codec did with one tensor.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    codec: CodecSpec,
    isa: &'static str,
    threads: usize,
    dtype: &'static str,
    /// Samples, tokens, channels.
    shape: [usize; 3],
    /// Of the tensor.
    bytes: usize,
    elements: usize,
    bits_per_element: f64,
    rel_sq_error: f64,
    /// Elements a second, and billions of the tensor's bytes a second.
    encode: Speed,
    decode: Speed,
    copy: Speed,
    encode_of_copy: f64,
    decode_of_copy: f64,
    /// The raw codec in the tensor's own format.
    raw_encode: Speed,
    raw_decode: Speed,
    /// The speed of a link above which the raw message arrives first; `null` if it never does.
    raw_first_above_gbit_per_second: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Speed {
    elements_per_second: f64,
    gb_per_second: f64,
}

/// Encodes, decodes and copies in turns, until the budget is spent and at least three times. The tensor is there twice, as
/// it comes and drifted, so that a codec that remembers samples has differences to send.
pub(super) fn measure(
    spec: CodecSpec,
    execution: Execution,
    x: &Tensor,
    budget: Duration,
) -> Result<Row, CommandError> {
    let (shape, view) = (x.shape(), TensorView::new(x.shape(), x.values())?);
    let dtype = view.dtype();
    let mut codec = Timed::new(spec, execution, x)?;
    let mut raw = Timed::new(CodecSpec::Raw(RawSettings { dtype }), execution, x)?;
    let (mut out, drifted) = (Tensor::zeros_like(x), x.drifted());
    codec.warm_up(&drifted, &mut out)?;
    raw.warm_up(&drifted, &mut out)?;
    let mut copy = f64::INFINITY;
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed() < budget {
        for x in [x, &drifted] {
            codec.round(x, &mut out)?;
            raw.round(x, &mut out)?;
        }
        let begin = Instant::now();
        black_box(&mut out).copy_from(black_box(x));
        copy = copy.min(begin.elapsed().as_secs_f64());
        rounds += 1;
    }
    codec.round(x, &mut out)?;
    let elements = shape.elements()?;
    let bytes = elements * dtype.size();
    let speed = |seconds: f64| Speed {
        elements_per_second: elements as f64 / seconds,
        gb_per_second: bytes as f64 / seconds / 1e9,
    };
    Ok(Row {
        codec: spec,
        isa: execution.isa.name(),
        threads: execution.threads.get(),
        dtype: dtype.name(),
        shape: [shape.samples, shape.tokens, shape.channels],
        bytes,
        elements,
        bits_per_element: 8.0 * codec.length as f64 / elements as f64,
        rel_sq_error: codec.codec.measure(view, &codec.message[..codec.length])?.rel_sq_error(),
        encode: speed(codec.encode),
        decode: speed(codec.decode),
        copy: speed(copy),
        encode_of_copy: copy / codec.encode,
        decode_of_copy: copy / codec.decode,
        raw_encode: speed(raw.encode),
        raw_decode: speed(raw.decode),
        raw_first_above_gbit_per_second: codec.overtaken_by(&raw).map(|bits| bits / 1e9),
    })
}

/// A codec, its message of the tensor and its fastest times in seconds.
struct Timed {
    codec: Box<dyn Codec>,
    message: Vec<u8>,
    /// Bytes of the last message.
    length: usize,
    encode: f64,
    decode: f64,
}

impl Timed {
    fn new(spec: CodecSpec, execution: Execution, x: &Tensor) -> Result<Self, CommandError> {
        let codec = spec.build_with(execution)?;
        let message = vec![0; codec.packed_size(x.shape(), x.values().dtype())?.bound()];
        Ok(Self { codec, message, length: 0, encode: f64::INFINITY, decode: f64::INFINITY })
    }

    /// A round that does not count: scratch memory is made, and a sample comes for the first time.
    fn warm_up(&mut self, x: &Tensor, out: &mut Tensor) -> Result<(), CommandError> {
        self.round(x, out)?;
        (self.encode, self.decode) = (f64::INFINITY, f64::INFINITY);
        Ok(())
    }

    fn round(&mut self, x: &Tensor, out: &mut Tensor) -> Result<(), CommandError> {
        let view = TensorView::new(x.shape(), x.values())?;
        let start = Instant::now();
        self.length = self.codec.encode(black_box(view), black_box(&mut self.message))?;
        let encoded = Instant::now();
        let out = TensorViewMut::new(x.shape(), black_box(out).values_mut())?;
        self.codec.decode(black_box(&self.message[..self.length]), out)?;
        self.encode = self.encode.min((encoded - start).as_secs_f64());
        self.decode = self.decode.min(encoded.elapsed().as_secs_f64());
        Ok(())
    }

    /// The bits a second of a link from which on a message of `raw` arrives before one of this codec, where encoding,
    /// sending and decoding follow one another; `None` if that is on no link.
    fn overtaken_by(&self, raw: &Self) -> Option<f64> {
        let saved_bits = 8.0 * (raw.length as f64 - self.length as f64);
        let added_seconds = self.encode + self.decode - raw.encode - raw.decode;
        (added_seconds > 0.0 && self.codec.spec() != raw.codec.spec())
            .then(|| saved_bits.max(0.0) / added_seconds)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let giga = |speed: Speed| speed.elements_per_second / 1e9;
        write!(
            f,
            "{:<40} {:<8} {:<4} {:>7} KiB {:>2} threads  encode {:>6.3} G/s {:>5.2} of copy  \
             decode {:>6.3} G/s {:>5.2} of copy  copy {:>6.3} G/s  {:>6.3} bits  error {:.1e}",
            self.codec.to_string(),
            self.isa,
            self.dtype,
            self.bytes / 1024,
            self.threads,
            giga(self.encode),
            self.encode_of_copy,
            giga(self.decode),
            self.decode_of_copy,
            giga(self.copy),
            self.bits_per_element,
            self.rel_sq_error,
        )?;
        match self.raw_first_above_gbit_per_second {
            Some(rate) => write!(f, "  raw first above {rate:.2} Gbit/s"),
            None => Ok(()),
        }
    }
}
