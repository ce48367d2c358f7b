//! What every configuration has to fulfil, whatever file it came from.

use std::path::Path;

use super::{DecoderConfig, RopeScaling};
use crate::Error;
use crate::error::require;

/// No model comes near it; it bounds the list of tensors.
const MAX_LAYERS: usize = 4096;

/// Bound of every other size: products of two, or three, still fit a `u64`.
const MAX_SIZE: usize = 1 << 21;

impl DecoderConfig {
    /// Checks a configuration that was read from `path`.
    pub(crate) fn validate(&self, path: &Path) -> Result<(), Error> {
        let sizes = [
            ("number of layers", self.layers, MAX_LAYERS),
            ("hidden size", self.hidden, MAX_SIZE),
            ("number of heads", self.heads, MAX_SIZE),
            ("number of key and value heads", self.kv_heads, MAX_SIZE),
            ("size of a head", self.head_dim, MAX_SIZE),
            ("size of the feed-forward layer", self.ffn, MAX_SIZE),
            ("context", self.context, 1 << 30),
            ("size of the vocabulary", self.vocab, 1 << 30),
        ];
        for (what, size, most) in sizes {
            require((1..=most).contains(&size), path, what, format_args!("1 to {most}"), size)?;
        }
        let divides = self.heads.is_multiple_of(self.kv_heads);
        let what = "number of key and value heads";
        require(divides, path, what, format_args!("a divisor of {}", self.heads), self.kv_heads)?;
        positive(path, "epsilon of the norms", self.norm_eps)?;
        let Some(rope) = self.rope else { return Ok(()) };
        require(self.head_dim.is_multiple_of(2), path, "size of a head", "an even number", self.head_dim)?;
        positive(path, "RoPE theta", rope.theta)?;
        match rope.scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => positive(path, "RoPE factor", factor),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                positive(path, "RoPE factor", factor)?;
                positive(path, "RoPE low_freq_factor", low_freq_factor)?;
                let more = high_freq_factor.is_finite() && high_freq_factor > low_freq_factor;
                let expected = format_args!("more than {low_freq_factor}");
                require(more, path, "RoPE high_freq_factor", expected, high_freq_factor)?;
                require(original_context > 0, path, "RoPE original context", "1 or more", original_context)
            }
        }
    }
}

fn positive(path: &Path, what: &str, value: f64) -> Result<(), Error> {
    require(value.is_finite() && value > 0.0, path, what, "a number over 0", value)
}
