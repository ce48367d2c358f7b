//! Token (and for GPT-2 position) embeddings.

use burn::tensor::{Int, Tensor};
use thinwire_ops::embedding;

use super::block::INIT_STD;
use super::{Architecture, Init, Leaves, Matrix, ParamSet};
use crate::config::Family;

/// The first unit.
#[derive(Debug)]
pub(crate) struct Embedding {
    tokens: Matrix,
    positions: Option<Matrix>,
    hidden: usize,
}

/// The embedding matrix's name, the one a tied head shares.
pub(crate) fn token_name(family: Family) -> &'static str {
    match family {
        Family::Gpt2 => "transformer.wte.weight",
        _ => "model.embed_tokens.weight",
    }
}

impl Embedding {
    pub(crate) fn new(params: &mut ParamSet, arch: &Architecture) -> Self {
        let init = Init::Normal(INIT_STD);
        let tokens = params.table(token_name(arch.family).into(), [arch.vocab, arch.hidden], init);
        let positions = (!arch.is_rotary())
            .then(|| params.table("transformer.wpe.weight".into(), [arch.context, arch.hidden], init));
        Self { tokens, positions, hidden: arch.hidden }
    }

    /// `ids: [samples, tokens]`, the first of them at position `start`, to `[samples, tokens, hidden]`.
    pub(crate) fn forward(&self, leaves: &Leaves, ids: Tensor<2, Int>, start: usize) -> Tensor<3> {
        let [samples, tokens] = ids.dims();
        let (matrix, sum) = leaves.summed(self.tokens);
        let ids = ids.reshape([samples * tokens]);
        let h = embedding(matrix, ids, sum).reshape([samples, tokens, self.hidden]);
        // The sum is in f32, and so are those of the gradients of a token's occurrences.
        leaves.dtype().cast(match self.positions {
            Some(positions) => h + leaves.matrix(positions).narrow(0, start, tokens).unsqueeze::<3>(),
            None => h,
        })
    }
}
