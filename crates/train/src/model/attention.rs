//! Causal self-attention with grouped key and value heads, and rotary positions.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::tensor::Tensor;
use thinwire_ops::{AttentionShape, RotaryTable, attention, rotary};

use super::cache::LayerCache;
use super::{Architecture, Shard};
use crate::config::RopeScaling;

/// Head counts and sizes of a rank's share of one attention layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) query: usize,
    pub(crate) key_value: usize,
    pub(crate) dim: usize,
}

impl Heads {
    pub(crate) fn of(arch: &Architecture, shard: Shard) -> Self {
        let [query, key_value] = [arch.heads, arch.kv_heads].map(|heads| shard.share(heads).len());
        Self { query, key_value, dim: arch.head_dim() }
    }

    /// `softmax(Q K^T / sqrt(d) + causal) V`.
    ///
    /// `q: [samples * tokens, query * dim]`, `k`, `v: [samples * tokens, key_value * dim]`; the result is like `q`.
    /// With a cache, the only sample's tokens follow those that are in it, and join them.
    pub(crate) fn attend(
        &self,
        [q, k, v]: [Tensor<2>; 3],
        [samples, tokens]: [usize; 2],
        rotary: Option<&Rotary>,
        cache: Option<&mut LayerCache>,
    ) -> Tensor<2> {
        let (q, k) = match rotary {
            Some(rotary) => (rotary.rotate(q, tokens), rotary.rotate(k, tokens)),
            None => (q, k),
        };
        let [k, v] = match cache {
            Some(cache) => cache.extend([k, v]),
            None => [k, v],
        };
        let shape = AttentionShape {
            samples,
            queries: tokens,
            keys: k.dims()[0] / samples,
            query_heads: self.query,
            kv_heads: self.key_value,
            head_dim: self.dim,
        };
        attention([q, k, v], shape)
    }
}

/// Rotary position embedding (Su et al., 2021), of positions from `start` on.
#[derive(Debug)]
pub(crate) struct Rotary {
    table: Arc<RotaryTable>,
    start: usize,
}

impl Rotary {
    /// The angles of the positions from `start` to `end`.
    pub(crate) fn new(arch: &Architecture, start: usize, end: usize) -> Self {
        let frequencies: Vec<f64> = (0..arch.head_dim() / 2).map(|pair| 1.0 / period(arch, pair)).collect();
        Self { table: Arc::new(RotaryTable::new(&frequencies, end, 1.0)), start }
    }

    fn rotate(&self, x: Tensor<2>, tokens: usize) -> Tensor<2> {
        rotary(x, &self.table, tokens, self.start)
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
