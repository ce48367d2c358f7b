//! Metadata and tensors to configuration.

use super::value::Value;
use super::{Gguf, Metadata};
use crate::config::RopeScaling;
use crate::error::require;
use crate::{DecoderConfig, Error, Family, Rope};

/// Divisors of the rotation's frequencies, `[head_dim / 2]`: how llama.cpp stores the scaling of Llama 3.
pub(super) const ROPE_FACTORS: &str = "rope_freqs.weight";

const EMBEDDING: &str = "token_embd.weight";
const HEAD: &str = "output.weight";

/// Keys below the architecture's name that change what is computed, and the value that does not.
const NEUTRAL: [(&str, Value); 13] = [
    ("expert_count", Value::Unsigned(0)),
    ("attention.causal", Value::Bool(true)),
    ("attention.sliding_window", Value::Unsigned(0)),
    ("attention.scale", Value::F32(0.0)),
    ("attention.clamp_kqv", Value::F32(0.0)),
    ("attention.max_alibi_bias", Value::F32(0.0)),
    ("attn_logit_softcapping", Value::F32(0.0)),
    ("final_logit_softcapping", Value::F32(0.0)),
    ("logit_scale", Value::F32(0.0)),
    ("embedding_scale", Value::F32(0.0)),
    ("residual_scale", Value::F32(0.0)),
    ("rope.scale_linear", Value::F32(1.0)),
    ("rope.scaling.attn_factor", Value::F32(1.0)),
];

pub(super) fn read(file: &Gguf) -> Result<DecoderConfig, Error> {
    let metadata = file.metadata();
    let name = metadata.string("general.architecture")?;
    let name = metadata.needed("general.architecture", name)?;
    let family = DecoderConfig::family_named(name)
        .ok_or_else(|| metadata.refuse("general.architecture", &DecoderConfig::supported_families()))?;
    let keys = Keys { metadata, architecture: name };
    for (key, neutral) in &NEUTRAL {
        keys.only(key, neutral)?;
    }
    let hidden = keys.needed_size("embedding_length")?;
    let heads = keys.needed_size("attention.head_count")?;
    let kv_heads = keys.size("attention.head_count_kv")?.unwrap_or(heads);
    let head_dim = keys.size("attention.key_length")?.or(hidden.checked_div(heads)).unwrap_or(0);
    for key in ["attention.value_length", "rope.dimension_count"] {
        let size = keys.size(key)?.unwrap_or(head_dim);
        require(size == head_dim, metadata.path(), format_args!("metadata `{name}.{key}`"), head_dim, size)?;
    }
    let epsilon = match family {
        Family::Gpt2 => "attention.layer_norm_epsilon",
        Family::Llama | Family::Qwen2 | Family::Qwen3 => "attention.layer_norm_rms_epsilon",
    };
    let embedding = file.shape(EMBEDDING).and_then(|shape| shape.first().copied());
    let missing =
        || Error::mismatch(metadata.path(), format_args!("tensor `{EMBEDDING}`"), "one, with rows", "none");
    let mut config = DecoderConfig {
        family,
        layers: keys.needed_size("block_count")?,
        hidden,
        heads,
        kv_heads,
        head_dim,
        ffn: keys.needed_size("feed_forward_length")?,
        context: keys.needed_size("context_length")?,
        vocab: embedding.ok_or_else(missing)?,
        tied: file.shape(HEAD).is_none(),
        norm_eps: keys.needed_real(epsilon)?,
        rope: None,
    };
    if family != Family::Gpt2 {
        let theta = keys.real("rope.freq_base")?.unwrap_or(10_000.0);
        config.rope = Some(Rope { theta, scaling: keys.scaling()? });
    }
    config.validate(metadata.path())?;
    if let (Some(rope), Some(_)) = (&mut config.rope, file.shape(ROPE_FACTORS)) {
        rope.scaling = llama3(file, rope, head_dim)?;
    }
    Ok(config)
}

/// The scaling of Llama 3.1 and later behind a table of divisors.
///
/// The file has the table alone. All releases of Llama share the other numbers, so the largest divisor is the factor,
/// and a table that does not follow is of another scaling.
fn llama3(file: &Gguf, rope: &Rope, head_dim: usize) -> Result<RopeScaling, Error> {
    let found = file.read(ROPE_FACTORS)?;
    let factor = found.iter().copied().fold(1.0, f32::max);
    let scaling = RopeScaling::Llama3 {
        factor: f64::from(factor),
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    let plain = Rope { scaling: RopeScaling::None, ..*rope }.frequencies(head_dim);
    let expected = plain.iter().map(|&frequency| scaling.divisor(frequency));
    let near = |(found, expected): (&f32, f64)| (f64::from(*found) - expected).abs() <= 1e-4 * expected;
    let follows = rope.scaling == RopeScaling::None
        && found.len() == plain.len()
        && found.iter().zip(expected).all(near);
    if follows {
        return Ok(scaling);
    }
    let supported = "that of Llama 3.1 (low 1, high 4, original context 8192)";
    Err(Error::unsupported(file.metadata().path(), ROPE_FACTORS, "of another RoPE scaling", supported))
}

/// The metadata below an architecture's name.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn size(&self, key: &str) -> Result<Option<usize>, Error> {
        let size = self.metadata.unsigned(&self.full(key))?;
        // What does not fit is over every bound of a size.
        Ok(size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)))
    }

    fn needed_size(&self, key: &str) -> Result<usize, Error> {
        self.metadata.needed(&self.full(key), self.size(key)?)
    }

    fn real(&self, key: &str) -> Result<Option<f64>, Error> {
        self.metadata.real(&self.full(key))
    }

    fn needed_real(&self, key: &str) -> Result<f64, Error> {
        self.metadata.needed(&self.full(key), self.real(key)?)
    }

    fn only(&self, key: &str, neutral: &Value) -> Result<(), Error> {
        let key = self.full(key);
        match self.metadata.get(&key) {
            Some(value) if value != neutral => Err(self.metadata.refuse(&key, &neutral.shown())),
            _ => Ok(()),
        }
    }

    fn scaling(&self) -> Result<RopeScaling, Error> {
        let key = self.full("rope.scaling.type");
        match self.metadata.string(&key)? {
            None | Some("none") => Ok(RopeScaling::None),
            Some("linear") => Ok(RopeScaling::Linear { factor: self.needed_real("rope.scaling.factor")? }),
            Some(_) => Err(self.metadata.refuse(&key, "\"none\", \"linear\"")),
        }
    }
}
