//! Causal self-attention with grouped key and value heads, and rotary positions.

use std::f64::consts::PI;

use burn::tensor::{Bool, Device, Tensor, TensorData, activation::softmax};

use super::Architecture;
use crate::config::RopeScaling;

/// Head counts and sizes of one attention layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) query: usize,
    pub(crate) key_value: usize,
    pub(crate) dim: usize,
}

impl Heads {
    pub(crate) fn of(arch: &Architecture) -> Self {
        Self { query: arch.heads, key_value: arch.kv_heads, dim: arch.head_dim() }
    }

    /// `softmax(Q K^T / sqrt(d) + causal) V`.
    ///
    /// `q: [samples * tokens, query * dim]`, `k`, `v: [samples * tokens, key_value * dim]`; the result is like `q`.
    pub(crate) fn attend(
        &self,
        [q, k, v]: [Tensor<2>; 3],
        [samples, tokens]: [usize; 2],
        rotary: Option<&Rotary>,
    ) -> Tensor<2> {
        let device = q.device();
        let split = |x: Tensor<2>, heads| x.reshape([samples, tokens, heads, self.dim]).swap_dims(1, 2);
        let (mut q, mut k) = (split(q, self.query), split(k, self.key_value));
        let mut v = split(v, self.key_value);
        if let Some(rotary) = rotary {
            q = rotary.rotate(q);
            k = rotary.rotate(k);
        }
        let shared = self.query / self.key_value;
        if shared > 1 {
            k = repeat_heads(k, shared);
            v = repeat_heads(v, shared);
        }
        let scores = (q * (self.dim as f64).powf(-0.5)).matmul(k.transpose());
        let scores = scores.mask_fill(future(tokens, &device), f32::NEG_INFINITY);
        softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([samples * tokens, self.query * self.dim])
    }
}

/// Each key/value head `times` in a row: `[b, h, s, d]` to `[b, h * times, s, d]`.
fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    let [samples, heads, tokens, dim] = x.dims();
    x.unsqueeze_dim::<5>(2).expand([samples, heads, times, tokens, dim]).reshape([
        samples,
        heads * times,
        tokens,
        dim,
    ])
}

/// True where a key lies after its query: `[1, 1, tokens, tokens]`.
fn future(tokens: usize, device: &Device) -> Tensor<4, Bool> {
    let mask: Vec<bool> = (0..tokens * tokens).map(|i| i % tokens > i / tokens).collect();
    Tensor::from_data(TensorData::new(mask, [1, 1, tokens, tokens]), device)
}

/// Rotary position embedding, the half-split layout of Hugging Face files (Su et al., 2021).
#[derive(Debug)]
pub(crate) struct Rotary {
    cos: Tensor<4>,
    sin: Tensor<4>,
}

impl Rotary {
    /// The angles of the first `tokens` positions.
    pub(crate) fn new(arch: &Architecture, tokens: usize, device: &Device) -> Self {
        let half = arch.head_dim() / 2;
        let periods: Vec<f64> = (0..half).map(|pair| period(arch, pair)).collect();
        let angles: Vec<f64> = (0..tokens * half).map(|i| (i / half) as f64 / periods[i % half]).collect();
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&a| f(a) as f32).collect();
            Tensor::from_data(TensorData::new(values, [1, 1, tokens, half]), device)
        };
        Self { cos: table(f64::cos), sin: table(f64::sin) }
    }

    /// Turns each pair `(x_i, x_{i + d/2})` by its position's angle.
    fn rotate(&self, x: Tensor<4>) -> Tensor<4> {
        let half = x.dims()[3] / 2;
        let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        let (cos, sin) = (self.cos.clone(), self.sin.clone());
        let first = a.clone() * cos.clone() - b.clone() * sin.clone();
        let second = b * cos + a * sin;
        Tensor::cat(vec![first, second], 3)
    }
}

/// Tokens in which rotary pair `pair` turns by one radian.
fn period(arch: &Architecture, pair: usize) -> f64 {
    let exponent = (2 * pair) as f64 / arch.head_dim() as f64;
    let period = arch.rope_theta.powf(exponent);
    match arch.rope_scaling {
        None => period,
        Some(RopeScaling::Linear { factor }) => period * factor,
        Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => {
            let turns = original_context as f64 / (2.0 * PI * period);
            // Share of the frequency that is kept: 0 for long waves, 1 for short ones.
            let kept = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
            let kept = kept.clamp(0.0, 1.0);
            period / ((1.0 - kept) / factor + kept)
        }
    }
}
