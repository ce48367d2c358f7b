//! What a step sends over every link, known from the configuration alone.

use serde::Serialize;
use thinwire_codec::{CodecError, CodecSpec, DType, Shape, SpecError};
use thinwire_link::HEADER_LEN;

use crate::config::{Config, LayerMap};
use crate::metrics::Direction;
use crate::model::Architecture;

/// What one direction of a link carries in a step with all its micro-batches: the frames of activations or gradients,
/// their headers included. The end-of-step messages (see [`tied_gradient_bytes`]) and TLS come on top.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkTraffic {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Activations or gradients.
    pub direction: Direction,
    /// The codec.
    pub codec: CodecSpec,
    /// Bits of the codec's messages for an element.
    pub bits_per_element: f64,
    /// Bytes a step.
    pub bytes: u64,
    /// The same with bf16 values.
    pub bf16_bytes: u64,
    /// The same with f32 values.
    pub f32_bytes: u64,
    /// Bits a second the direction is held to; `None` where it is not throttled.
    pub bandwidth: Option<u64>,
    /// Seconds that `bytes` take at that rate.
    pub seconds: Option<f64>,
    /// Seconds that each message takes beyond that, where latency is added.
    pub latency: Option<f64>,
}

/// Why traffic cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A codec whose settings do not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A tensor that is too large for a message.
    #[error(transparent)]
    Size(#[from] CodecError),
}

/// The traffic of a step, by boundary, activations before gradients. `map` is `None` as long as it is to be measured.
///
/// # Errors
/// A codec cannot take the tensors.
pub fn traffic(config: &Config, map: Option<&LayerMap>) -> Result<Vec<LinkTraffic>, TrafficError> {
    // Only where the map is written can a boundary have settings of its own: else they are alike, wherever they lie.
    let boundaries = map.map_or_else(|| vec![0; config.pipeline.stages - 1], LayerMap::boundaries);
    let mut links = Vec::new();
    for (stage, before) in boundaries.into_iter().enumerate() {
        let codecs = config.pipeline.boundary(before);
        let bandwidth = codecs.bandwidth.map(|bandwidth| bandwidth.rate().bits_per_second());
        for (from, to, direction, codec) in [
            (stage, stage + 1, Direction::Forward, codecs.forward),
            (stage + 1, stage, Direction::Backward, codecs.backward),
        ] {
            let bytes = step_bytes(config, &codec)?;
            links.push(LinkTraffic {
                from,
                to,
                direction,
                codec,
                bits_per_element: bits_per_element(config, &codec)?,
                bytes,
                bf16_bytes: step_bytes(config, &"bf16".parse()?)?,
                f32_bytes: step_bytes(config, &"f32".parse()?)?,
                bandwidth,
                seconds: bandwidth.map(|bandwidth| bytes as f64 * 8.0 / bandwidth as f64),
                latency: codecs.latency.map(|latency| latency.duration().as_secs_f64()),
            });
        }
    }
    Ok(links)
}

/// Bytes of a share of a tied matrix's gradient, which every step sends once in either direction over each of several
/// stages' links; 0 for a model that has none, or does not train it.
///
/// # Errors
/// The codec cannot take the matrix.
pub fn tied_gradient_bytes(config: &Config, architecture: &Architecture) -> Result<u64, TrafficError> {
    match architecture.tied_shape().filter(|_| config.pipeline.stages > 1) {
        Some(shape) => Ok(config.pipeline.tied.build()?.packed_size(shape, DType::F32)?.bound() as u64),
        None => Ok(0),
    }
}

fn step_bytes(config: &Config, codec: &CodecSpec) -> Result<u64, TrafficError> {
    let frame = message_bytes(config, codec)?.saturating_add(HEADER_LEN);
    Ok((frame as u64).saturating_mul(config.train.micro_batches as u64))
}

fn bits_per_element(config: &Config, codec: &CodecSpec) -> Result<f64, TrafficError> {
    Ok(message_bytes(config, codec)? as f64 * 8.0 / shape(config).elements()? as f64)
}

/// Bytes of one micro-batch's message, its samples seen before.
fn message_bytes(config: &Config, codec: &CodecSpec) -> Result<usize, TrafficError> {
    Ok(codec.build()?.usual_size(shape(config), DType::F32)?)
}

fn shape(config: &Config) -> Shape {
    Shape::new(config.train.micro_batch, config.train.sequence, config.model.hidden)
}
