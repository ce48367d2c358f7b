//! The parameters of a decoder: names and shapes as the transformers library has them.

use super::{DecoderConfig, Family};

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Hugging Face name, such as `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// Row-major; a linear layer is `[out, in]`, except GPT-2's in blocks, which are `[in, out]`.
    pub shape: Vec<usize>,
}

impl TensorSpec {
    fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> Self {
        Self { name: name.into(), shape: shape.into() }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl DecoderConfig {
    /// All parameters: embedding, blocks in order, final norm, and the head unless it is tied.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let mut tensors = match self.family {
            Family::Gpt2 => self.gpt2(),
            Family::Llama | Family::Qwen2 | Family::Qwen3 => self.rotary(),
        };
        if !self.tied {
            tensors.push(TensorSpec::new("lm_head.weight", [self.vocab, self.hidden]));
        }
        tensors
    }

    fn gpt2(&self) -> Vec<TensorSpec> {
        let Self { hidden, ffn, .. } = *self;
        let mut tensors = vec![
            TensorSpec::new("transformer.wte.weight", [self.vocab, hidden]),
            TensorSpec::new("transformer.wpe.weight", [self.context, hidden]),
        ];
        for layer in 0..self.layers {
            let mut put = |name: &str, shape: &[usize]| {
                tensors.push(TensorSpec::new(format!("transformer.h.{layer}.{name}.weight"), shape));
                let bias = shape[shape.len() - 1];
                tensors.push(TensorSpec::new(format!("transformer.h.{layer}.{name}.bias"), [bias]));
            };
            put("ln_1", &[hidden]);
            put("attn.c_attn", &[hidden, 3 * hidden]);
            put("attn.c_proj", &[hidden, hidden]);
            put("ln_2", &[hidden]);
            put("mlp.c_fc", &[hidden, ffn]);
            put("mlp.c_proj", &[ffn, hidden]);
        }
        tensors.push(TensorSpec::new("transformer.ln_f.weight", [hidden]));
        tensors.push(TensorSpec::new("transformer.ln_f.bias", [hidden]));
        tensors
    }

    fn rotary(&self) -> Vec<TensorSpec> {
        let Self { family, hidden, head_dim, ffn, .. } = *self;
        let (q, kv) = (self.heads * head_dim, self.kv_heads * head_dim);
        let mut tensors = vec![TensorSpec::new("model.embed_tokens.weight", [self.vocab, hidden])];
        for layer in 0..self.layers {
            let mut put = |name: &str, shape: &[usize]| {
                tensors.push(TensorSpec::new(format!("model.layers.{layer}.{name}"), shape));
            };
            put("input_layernorm.weight", &[hidden]);
            for (projection, out) in [("q_proj", q), ("k_proj", kv), ("v_proj", kv)] {
                put(&format!("self_attn.{projection}.weight"), &[out, hidden]);
                if family.qkv_bias() {
                    put(&format!("self_attn.{projection}.bias"), &[out]);
                }
            }
            if family.qk_norm() {
                put("self_attn.q_norm.weight", &[head_dim]);
                put("self_attn.k_norm.weight", &[head_dim]);
            }
            put("self_attn.o_proj.weight", &[hidden, q]);
            put("post_attention_layernorm.weight", &[hidden]);
            put("mlp.gate_proj.weight", &[ffn, hidden]);
            put("mlp.up_proj.weight", &[ffn, hidden]);
            put("mlp.down_proj.weight", &[hidden, ffn]);
        }
        tensors.push(TensorSpec::new("model.norm.weight", [hidden]));
        tensors
    }
}
