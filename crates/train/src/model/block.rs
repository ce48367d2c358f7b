//! One transformer block of any family.

use burn::tensor::Tensor;
use thinwire_ops::{gelu_tanh, swiglu};

use super::attention::{Heads, Rotary};
use super::cache::LayerCache;
use super::linear::{Bias, Linear, Share};
use super::norm::Norm;
use super::{Architecture, Leaves, ParamSet};
use crate::config::Family;
use crate::tensor_parallel::Site;

/// Standard deviation of the starting weights (Radford et al., 2019).
pub(crate) const INIT_STD: f32 = 0.02;

/// `h + attention(norm(h))`, then `h + mlp(norm(h))`.
#[derive(Debug)]
pub(crate) struct Block {
    heads: Heads,
    attention_norm: Norm,
    qkv: Qkv,
    attention_out: Linear,
    mlp_norm: Norm,
    mlp: Mlp,
    /// Where ranks add up what the two layers give.
    sites: [Site; 2],
}

#[derive(Debug)]
enum Qkv {
    Joint(Linear),
    Split { linears: [Linear; 3], head_norms: Option<HeadNorms> },
}

/// The norms of Qwen 3, each over the channels of one head.
#[derive(Debug)]
struct HeadNorms {
    query: Norm,
    key: Norm,
}

#[derive(Debug)]
enum Mlp {
    Gelu { up: Linear, down: Linear },
    SwiGlu { gate: Linear, up: Linear, down: Linear },
}

impl Block {
    /// Block `index`, its parameters appended to `params`.
    pub(crate) fn new(params: &mut ParamSet, arch: &Architecture, index: usize) -> Self {
        let name = arch.block_name(index);
        match arch.family {
            Family::Gpt2 => Self::gpt2(params, arch, &name, Site::of_block(index, arch.layers)),
            _ => Self::llama(params, arch, &name, Site::of_block(index, arch.layers)),
        }
    }

    fn gpt2(params: &mut ParamSet, arch: &Architecture, name: &str, sites: [Site; 2]) -> Self {
        let (d, f, shard) = (arch.hidden, arch.ffn, params.shard());
        let out_std = residual_std(arch);
        let linear = |params: &mut ParamSet, path: &str, dims, std, share: &Share| {
            Linear::new(params, arch, &format!("{name}.{path}"), dims, std, Bias::With, share)
        };
        let (attention, mlp) = (shard.channels(arch.heads, arch.head_dim()), shard.share(f));
        // Queries, keys and values lie side by side.
        let joint = [0, 1, 2].map(|part| part * d + attention.start..part * d + attention.end);
        Self {
            sites,
            heads: Heads::of(arch, shard),
            attention_norm: Norm::new(params, &format!("{name}.ln_1"), arch.family, d, arch.norm_eps),
            qkv: Qkv::Joint(linear(
                params,
                "attn.c_attn",
                [d, 3 * d],
                INIT_STD,
                &Share::Columns(joint.to_vec()),
            )),
            attention_out: linear(params, "attn.c_proj", [d, d], out_std, &Share::Rows(attention)),
            mlp_norm: Norm::new(params, &format!("{name}.ln_2"), arch.family, d, arch.norm_eps),
            mlp: Mlp::Gelu {
                up: linear(params, "mlp.c_fc", [d, f], INIT_STD, &Share::Columns(vec![mlp.clone()])),
                down: linear(params, "mlp.c_proj", [f, d], out_std, &Share::Rows(mlp)),
            },
        }
    }

    /// Llama and its relatives.
    fn llama(params: &mut ParamSet, arch: &Architecture, name: &str, sites: [Site; 2]) -> Self {
        let (d, f, shard) = (arch.hidden, arch.ffn, params.shard());
        let (q, out_std) = (arch.heads * arch.head_dim(), residual_std(arch));
        let linear = |params: &mut ParamSet, path: &str, dims, std, share: &Share| {
            Linear::new(params, arch, &format!("{name}.{path}"), dims, std, Bias::Without, share)
        };
        let attention = Share::Rows(shard.channels(arch.heads, arch.head_dim()));
        let [columns, rows] = [Share::Columns(vec![shard.share(f)]), Share::Rows(shard.share(f))];
        let attention_norm =
            Norm::new(params, &format!("{name}.input_layernorm"), arch.family, d, arch.norm_eps);
        let qkv = Qkv::split(params, arch, &format!("{name}.self_attn"));
        let attention_out = linear(params, "self_attn.o_proj", [q, d], out_std, &attention);
        let mlp_norm =
            Norm::new(params, &format!("{name}.post_attention_layernorm"), arch.family, d, arch.norm_eps);
        let mlp = Mlp::SwiGlu {
            gate: linear(params, "mlp.gate_proj", [d, f], INIT_STD, &columns),
            up: linear(params, "mlp.up_proj", [d, f], INIT_STD, &columns),
            down: linear(params, "mlp.down_proj", [f, d], out_std, &rows),
        };
        Self { heads: Heads::of(arch, shard), attention_norm, qkv, attention_out, mlp_norm, mlp, sites }
    }

    /// `h: [samples, tokens, hidden]` to the same shape; `rotary` for all families but GPT-2; `cache` if tokens came before.
    pub(crate) fn forward(
        &self,
        leaves: &Leaves,
        h: Tensor<3>,
        rotary: Option<&Rotary>,
        cache: Option<&mut LayerCache>,
    ) -> Tensor<3> {
        let [samples, tokens, hidden] = h.dims();
        let h = h.reshape([samples * tokens, hidden]);
        let x = leaves.enter(self.attention_norm.forward(leaves, h.clone()), self.sites[0]);
        let qkv = self.qkv.forward(leaves, x, self.heads.dim);
        let x = self.heads.attend(qkv, [samples, tokens], rotary, cache);
        let h = h + self.attention_out.forward_summed(leaves, x, self.sites[0]);
        let x = leaves.enter(self.mlp_norm.forward(leaves, h.clone()), self.sites[1]);
        let h = h + self.mlp.forward(leaves, x, self.sites[1]);
        h.reshape([samples, tokens, hidden])
    }
}

impl Qkv {
    fn split(params: &mut ParamSet, arch: &Architecture, name: &str) -> Self {
        let bias = if arch.family == Family::Qwen2 { Bias::With } else { Bias::Without };
        let (dim, kv_heads) = (arch.head_dim(), arch.kv_heads);
        let linears =
            [("q_proj", arch.heads), ("k_proj", kv_heads), ("v_proj", kv_heads)].map(|(part, heads)| {
                let dims = [arch.hidden, heads * dim];
                let share = Share::Columns(vec![params.shard().channels(heads, dim)]);
                Linear::new(params, arch, &format!("{name}.{part}"), dims, INIT_STD, bias, &share)
            });
        let mut norm = |part| {
            let name = format!("{name}.{part}");
            Norm::new(params, &name, arch.family, dim, arch.norm_eps).of_share(params)
        };
        let head_norms =
            (arch.family == Family::Qwen3).then(|| HeadNorms { query: norm("q_norm"), key: norm("k_norm") });
        Self::Split { linears, head_norms }
    }

    fn forward(&self, leaves: &Leaves, x: Tensor<2>, head_dim: usize) -> [Tensor<2>; 3] {
        match self {
            Qkv::Joint(linear) => {
                let y = linear.forward(leaves, x);
                let width = y.dims()[1] / 3;
                [0, 1, 2].map(|i| y.clone().narrow(1, i * width, width))
            }
            Qkv::Split { linears, head_norms } => {
                let [q, k, v] = linears.map(|linear| linear.forward(leaves, x.clone()));
                let Some(HeadNorms { query, key }) = head_norms else { return [q, k, v] };
                let normed = |norm: &Norm, x: Tensor<2>| {
                    let [rows, width] = x.dims();
                    let heads = x.reshape([rows * width / head_dim, head_dim]);
                    norm.forward(leaves, heads).reshape([rows, width])
                };
                [normed(query, q), normed(key, k), v]
            }
        }
    }
}

impl Mlp {
    fn forward(&self, leaves: &Leaves, x: Tensor<2>, site: Site) -> Tensor<2> {
        match self {
            Mlp::Gelu { up, down } => down.forward_summed(leaves, gelu_tanh(up.forward(leaves, x)), site),
            Mlp::SwiGlu { gate, up, down } => {
                let gate = gate.forward(leaves, x.clone());
                down.forward_summed(leaves, swiglu(gate, up.forward(leaves, x)), site)
            }
        }
    }
}

/// Layers that write to the residual stream start smaller, by the number of them (Radford et al., 2019, 2.3).
fn residual_std(arch: &Architecture) -> f32 {
    INIT_STD / ((2 * arch.layers) as f32).sqrt()
}
