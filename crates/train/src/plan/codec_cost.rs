//! What a codec takes and makes, measured here on a tensor of the message's shape.

use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use thinwire_codec::{Codec, CodecSpec, DType, Execution, Shape, TensorView, TensorViewMut};

use super::TrafficError;
use super::median::median;
use super::stopwatch::Stopwatch;
use crate::model::Init;

/// Elements of the largest tensor that is encoded; times of larger ones are in proportion.
const MOST_ELEMENTS: usize = 1 << 20;

/// Rounds of encoding and decoding: at least so many, and then until the budget is spent.
const ROUNDS: usize = 5;
const BUDGET: Duration = Duration::from_millis(60);

/// A codec's cost for one tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CodecCost {
    /// Seconds to encode it.
    pub encode: f64,
    /// Seconds to decode it, into memory that is new, as in a run.
    pub decode: f64,
    /// Bytes of its message; with `aqsgd`, of samples that it has seen.
    pub bytes: u64,
}

/// Encodes and decodes Gaussian values with `threads` threads a message.
///
/// # Errors
/// The codec's settings do not fit, or the tensor is too large for a message.
pub fn codec_cost(spec: CodecSpec, shape: Shape, threads: NonZero<usize>) -> Result<CodecCost, TrafficError> {
    let bytes = spec.build()?.usual_size(shape, DType::F32)? as u64;
    let elements = shape.elements()?;
    let measured = within(shape);
    let ratio = elements as f64 / measured.elements()? as f64;
    let mut codec = spec.build_with(Execution { threads, ..Execution::choose()? })?;
    let (encode, decode) = times(&mut *codec, measured)?;
    Ok(CodecCost { encode: encode * ratio, decode: decode * ratio, bytes })
}

/// The shape with fewer samples, and then fewer tokens, so that it is small enough to be tried.
fn within(shape: Shape) -> Shape {
    let row = shape.channels.max(1);
    let tokens = shape.tokens.min((MOST_ELEMENTS / row).max(1)).max(1);
    let samples = shape.samples.min((MOST_ELEMENTS / (row * tokens)).max(1)).max(1);
    Shape::new(samples, tokens, row)
}

/// Medians of encoding and decoding.
fn times(codec: &mut dyn Codec, shape: Shape) -> Result<(f64, f64), TrafficError> {
    let values = Init::Normal(1.0).values(0, "message", shape.elements()?);
    let mut message = vec![0; codec.packed_size(shape, DType::F32)?.bound()];
    let (mut encode, mut decode) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while encode.len() < ROUNDS || start.elapsed() < BUDGET {
        let stopwatch = Stopwatch::start();
        let view = TensorView::new(shape, values.as_slice())?;
        let length = codec.encode(black_box(view), &mut message).expect("finite values have a message");
        encode.push(stopwatch.seconds());
        let stopwatch = Stopwatch::start();
        let mut decoded = vec![0.0f32; values.len()];
        let view = TensorViewMut::new(shape, decoded.as_mut_slice())?;
        codec.decode(black_box(&message[..length]), view).expect("a message that was just made");
        black_box(&decoded);
        decode.push(stopwatch.seconds());
    }
    Ok((median(encode), median(decode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_codecs_own_size_and_take_time() {
        let shape = Shape::new(2, 64, 128);
        let cost =
            |spec: &str, shape| codec_cost(spec.parse().unwrap(), shape, NonZero::<usize>::MIN).unwrap();
        let raw = cost("f32", shape);
        let fixed = cost("fixed:bits=4,group=64", shape);
        // 4 bytes in front of the values.
        assert_eq!(raw.bytes, 4 + 4 * 2 * 64 * 128);
        // 4 bits a value, 16 for the scale of 64 of them.
        assert_eq!(fixed.bytes, 4 + 2 * 64 * 128 / 2 + 2 * 2 * 64 * 128 / 64);
        assert!(fixed.encode > 0.0 && fixed.decode > 0.0);
    }

    #[test]
    fn a_large_tensor_is_tried_in_part_but_counted_whole() {
        let large = Shape::new(8, 4096, 4096);
        assert_eq!(within(large), Shape::new(1, 256, 4096));
        assert_eq!(within(Shape::new(8, 64, 64)), Shape::new(8, 64, 64));
        assert_eq!(within(Shape::new(1, 1, 1 << 24)), Shape::new(1, 1, 1 << 24));
        let cost = codec_cost("bf16".parse().unwrap(), large, NonZero::<usize>::MIN).unwrap();
        assert_eq!(cost.bytes, 4 + 2 * 8 * 4096 * 4096);
    }
}
