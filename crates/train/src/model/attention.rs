//! Causal self-attention with grouped key and value heads, and rotary positions.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::tensor::Tensor;
use thinwire_ops::{AttentionShape, RotaryTable, attention, rotary};

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
        let (q, k) = match rotary {
            Some(table) => (table.rotate(q, tokens), table.rotate(k, tokens)),
            None => (q, k),
        };
        let shape = AttentionShape {
            samples,
            queries: tokens,
            keys: tokens,
            query_heads: self.query,
            kv_heads: self.key_value,
            head_dim: self.dim,
        };
        attention([q, k, v], shape)
    }
}

/// Rotary position embedding (Su et al., 2021).
#[derive(Debug)]
pub(crate) struct Rotary(Arc<RotaryTable>);

impl Rotary {
    /// The angles of the first `tokens` positions.
    pub(crate) fn new(arch: &Architecture, tokens: usize) -> Self {
        let frequencies: Vec<f64> = (0..arch.head_dim() / 2).map(|pair| 1.0 / period(arch, pair)).collect();
        Self(Arc::new(RotaryTable::new(&frequencies, tokens, 1.0)))
    }

    fn rotate(&self, x: Tensor<2>, tokens: usize) -> Tensor<2> {
        rotary(x, &self.0, tokens, 0)
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
