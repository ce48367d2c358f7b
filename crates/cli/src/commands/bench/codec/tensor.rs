//! A tensor that imitates an activation.

use half::{bf16, f16};
use thinwire_codec::{DType, Shape, Values, ValuesMut};

/// Channels of the tensors, if they have so many values.
const CHANNELS: usize = 1024;

/// Tokens after which the tensor repeats itself.
const PERIOD: usize = 1024;

/// `[samples, tokens, channels]` in one of the number formats.
pub(super) struct Tensor {
    shape: Shape,
    values: Buffer,
}

enum Buffer {
    F32(Vec<f32>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
}

impl Tensor {
    /// Every channel Gaussian, with scales between 1/3 and 3, one channel in a hundred fifty times larger. The size is cut
    /// down to whole tokens, at least one a sample.
    pub(super) fn activation(dtype: DType, bytes: usize, samples: usize) -> Self {
        let values = bytes / dtype.size() / samples;
        let channels = values.clamp(1, CHANNELS);
        let shape = Shape::new(samples, (values / channels).max(1), channels);
        let tokens = shape.samples * shape.tokens;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            // xorshift64: speed and shape are what counts here.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let scales: Vec<f32> = (0..channels)
            .map(|channel| 3_f32.powf(2.0 * uniform() - 1.0) * if channel % 100 == 7 { 50.0 } else { 1.0 })
            .collect();
        let period: Vec<f32> = (0..tokens.min(PERIOD) * channels)
            .map(|i| ((0..12).map(|_| uniform()).sum::<f32>() - 6.0) * scales[i % channels])
            .collect();
        let values = period.iter().cycle().take(tokens * channels);
        let values = match dtype {
            DType::F32 => Buffer::F32(values.copied().collect()),
            DType::F16 => Buffer::F16(values.map(|&value| f16::from_f32(value)).collect()),
            DType::BF16 => Buffer::BF16(values.map(|&value| bf16::from_f32(value)).collect()),
        };
        Self { shape, values }
    }

    /// The same some time later, every value a 64th larger or smaller.
    pub(super) fn drifted(&self) -> Self {
        let drift = |(at, value): (usize, f32)| value + value * if at % 2 == 0 { 1.0 } else { -1.0 } / 64.0;
        let values = match &self.values {
            Buffer::F32(values) => Buffer::F32(values.iter().copied().enumerate().map(drift).collect()),
            Buffer::F16(values) => {
                let values = values.iter().map(|value| value.to_f32()).enumerate();
                Buffer::F16(values.map(drift).map(f16::from_f32).collect())
            }
            Buffer::BF16(values) => {
                let values = values.iter().map(|value| value.to_f32()).enumerate();
                Buffer::BF16(values.map(drift).map(bf16::from_f32).collect())
            }
        };
        Self { shape: self.shape, values }
    }

    /// Zeros in the format and shape of `other`.
    pub(super) fn zeros_like(other: &Self) -> Self {
        let values = match &other.values {
            Buffer::F32(values) => Buffer::F32(vec![0.0; values.len()]),
            Buffer::F16(values) => Buffer::F16(vec![f16::ZERO; values.len()]),
            Buffer::BF16(values) => Buffer::BF16(vec![bf16::ZERO; values.len()]),
        };
        Self { shape: other.shape, values }
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn values(&self) -> Values<'_> {
        match &self.values {
            Buffer::F32(values) => Values::F32(values),
            Buffer::F16(values) => Values::F16(values),
            Buffer::BF16(values) => Values::BF16(values),
        }
    }

    pub(super) fn values_mut(&mut self) -> ValuesMut<'_> {
        match &mut self.values {
            Buffer::F32(values) => ValuesMut::F32(values),
            Buffer::F16(values) => ValuesMut::F16(values),
            Buffer::BF16(values) => ValuesMut::BF16(values),
        }
    }

    /// Of the same format and length.
    pub(super) fn copy_from(&mut self, other: &Self) {
        match (&mut self.values, &other.values) {
            (Buffer::F32(out), Buffer::F32(values)) => out.copy_from_slice(values),
            (Buffer::F16(out), Buffer::F16(values)) => out.copy_from_slice(values),
            (Buffer::BF16(out), Buffer::BF16(values)) => out.copy_from_slice(values),
            _ => unreachable!("made for the same tensor"),
        }
    }
}
