//! This crate's models in the words of other people's formats.

use thinwire_pretrained::{DecoderConfig, Family as DecoderFamily, Rope, RopeScaling as Scaling};

use crate::config::{Family, RopeScaling};
use crate::model::Architecture;

impl From<&Architecture> for DecoderConfig {
    fn from(architecture: &Architecture) -> Self {
        let rope = || Rope { theta: architecture.rope_theta, scaling: scaling(architecture.rope_scaling) };
        Self {
            family: match architecture.family {
                Family::Gpt2 => DecoderFamily::Gpt2,
                Family::Llama => DecoderFamily::Llama,
                Family::Qwen2 => DecoderFamily::Qwen2,
                Family::Qwen3 => DecoderFamily::Qwen3,
            },
            layers: architecture.layers,
            hidden: architecture.hidden,
            heads: architecture.heads,
            kv_heads: architecture.kv_heads,
            head_dim: architecture.head_dim(),
            ffn: architecture.ffn,
            context: architecture.context,
            vocab: architecture.vocab,
            tied: architecture.tied,
            norm_eps: architecture.norm_eps,
            rope: architecture.is_rotary().then(rope),
        }
    }
}

fn scaling(scaling: Option<RopeScaling>) -> Scaling {
    match scaling {
        None => Scaling::None,
        Some(RopeScaling::Linear { factor }) => Scaling::Linear { factor },
        Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => {
            Scaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }
        }
    }
}
