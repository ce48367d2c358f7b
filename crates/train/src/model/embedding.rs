//! Token (and for GPT-2 position) embeddings.

use std::ops::Range;

use burn::tensor::{Int, Tensor};
use thinwire_ops::embedding;

use super::block::INIT_STD;
use super::{Architecture, Init, Leaves, Matrix, ParamSet};
use crate::config::Family;
use crate::tensor_parallel::Site;

/// The first unit.
#[derive(Debug)]
pub(crate) struct Embedding {
    tokens: Matrix,
    positions: Option<Matrix>,
    hidden: usize,
    /// The token ids whose rows this rank has.
    ids: Range<usize>,
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
        let shard = params.shard();
        let tokens = params.table(token_name(arch.family).into(), shard.vocabulary(arch), init);
        let positions = (!arch.is_rotary())
            .then(|| params.table("transformer.wpe.weight".into(), [arch.context, arch.hidden], init));
        Self { tokens, positions, hidden: arch.hidden, ids: shard.share(arch.vocab) }
    }

    /// `ids: [samples, tokens]`, the first of them at position `start`, to `[samples, tokens, hidden]`.
    pub(crate) fn forward(&self, leaves: &Leaves, ids: Tensor<2, Int>, start: usize) -> Tensor<3> {
        let [samples, tokens] = ids.dims();
        let h = self.look_up(leaves, ids.reshape([samples * tokens])).reshape([samples, tokens, self.hidden]);
        // The sum is in f32, and so are those of the gradients of a token's occurrences.
        leaves.dtype().cast(match self.positions {
            Some(positions) => h + leaves.matrix(positions).narrow(0, start, tokens).unsqueeze::<3>(),
            None => h,
        })
    }

    /// `ids: [rows]` to `[rows, hidden]`. Among ranks each looks up its own; for the others it adds nothing to the sum, and
    /// takes nothing from the gradient.
    fn look_up(&self, leaves: &Leaves, ids: Tensor<1, Int>) -> Tensor<2> {
        let (matrix, sum) = leaves.summed(self.tokens);
        let Some(group) = leaves.group() else { return embedding(matrix, ids, sum) };
        let [start, end] = [self.ids.start, self.ids.end].map(|id| id as u32);
        let elsewhere = ids.clone().lower_elem(start).bool_or(ids.clone().greater_equal_elem(end));
        let own = (ids - start).mask_fill(elsewhere.clone(), 0);
        let rows = elsewhere.dims()[0];
        let h = embedding(matrix, own, sum);
        let elsewhere = elsewhere.reshape([rows, 1]).expand([rows, self.hidden]);
        group.reduce(h.mask_fill(elsewhere, 0.0), Site::Embedding)
    }
}
