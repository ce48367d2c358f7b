//! Final norm, output matrix and loss.

use burn::tensor::{Int, Tensor};
use thinwire_ops::{WeightLayout, cross_entropy, linear};

use super::block::INIT_STD;
use super::embedding::token_name;
use super::norm::Norm;
use super::{Architecture, Init, Leaves, Matrix, ParamSet};
use crate::config::Family;
use crate::tensor_parallel::Site;

/// The output matrix's name.
pub(crate) const OUTPUT_NAME: &str = "lm_head.weight";

/// The last unit.
#[derive(Debug)]
pub(crate) struct Head {
    norm: Norm,
    output: Matrix,
}

impl Head {
    /// With tied embeddings the head still has a matrix of its own, which starts equal to the embedding and is kept
    /// equal by summing both gradients: so it can live on another machine.
    pub(crate) fn new(params: &mut ParamSet, arch: &Architecture) -> Self {
        let norm_name = match arch.family {
            Family::Gpt2 => "transformer.ln_f",
            _ => "model.norm",
        };
        let norm = Norm::new(params, norm_name, arch.family, arch.hidden, arch.norm_eps);
        let twin = if arch.tied { token_name(arch.family) } else { OUTPUT_NAME };
        let slice = params.shard().vocabulary(arch);
        let output = params.weight_like(OUTPUT_NAME.into(), slice, Init::Normal(INIT_STD), twin);
        Self { norm, output }
    }

    /// `h: [samples, tokens, hidden]` to logits `[samples * tokens, vocab]`; among ranks, to the columns of this one's ids.
    pub(crate) fn forward(&self, leaves: &Leaves, h: Tensor<3>) -> Tensor<2> {
        let [samples, tokens, hidden] = h.dims();
        let x = leaves.enter(self.norm.forward(leaves, h.reshape([samples * tokens, hidden])), Site::Head);
        let (output, sum) = leaves.summed(self.output);
        linear(x, output, None, WeightLayout::OutIn, sum)
    }
}

/// Cross-entropy of each token, in nats: logits `[n, vocab]`, targets `[n]` to `[n]`.
pub fn token_losses(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    cross_entropy(logits, targets)
}
