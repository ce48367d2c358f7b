//! Gradient checkpointing (Chen et al., 2016): of every block only its input is kept, and the block is run once more in the
//! backward pass.

use burn::tensor::Tensor;

use super::graph::{Graph, Objective, Recorded};
use crate::model::{Activation, GradientSums, Part};
use crate::tensor_parallel::Sums;

/// A micro-batch between its forward and its backward pass.
#[derive(Debug)]
pub(super) struct Checkpoints {
    /// The embedding's, which keeps nothing but the ids.
    embedding: Option<Graph>,
    blocks: Vec<Block>,
    /// The gradient that the head gave. Its logits are the largest tensor of all, so it is differentiated at once and never
    /// run again.
    from_head: Option<Tensor<3>>,
}

/// What is kept of a block.
#[derive(Debug)]
struct Block {
    /// Its position in the part.
    unit: usize,
    entered: Tensor<3>,
    /// What it added up over the ranks, which is not done again.
    sums: Sums,
}

impl Checkpoints {
    /// The forward pass; the head's gradients are added to `sums`.
    pub(super) fn record(
        part: &Part,
        entered: Activation,
        objective: Objective<'_>,
        sums: &GradientSums,
    ) -> (Self, Recorded) {
        let units = part.units().len();
        let mut kept = Self { embedding: None, blocks: Vec::new(), from_head: None };
        let mut blocks = 0..units - usize::from(part.has_head());
        let mut h = match entered {
            Activation::Hidden(h) => h,
            ids => {
                let (embedding, recorded) = Graph::record(part, 0..1, ids, None, sums);
                let Recorded::Hidden(h) = recorded else { unreachable!("an embedding has no loss") };
                kept.embedding = Some(embedding);
                blocks.start = 1;
                h
            }
        };
        let constants = part.params().constants();
        for unit in blocks {
            let entered = h.clone();
            let (left, sums) =
                part.record(|| part.forward_units(unit..unit + 1, &constants, Activation::Hidden(h)));
            kept.blocks.push(Block { unit, entered, sums });
            let Activation::Hidden(next) = left else { unreachable!("a block gives the residual stream") };
            h = next;
        }
        if !part.has_head() {
            return (kept, Recorded::Hidden(h));
        }
        let (head, loss) =
            Graph::record(part, units - 1..units, Activation::Hidden(h), Some(objective), sums);
        kept.from_head = head.backward(None);
        (kept, loss)
    }

    /// As [`Graph::backward`].
    pub(super) fn backward(
        self,
        part: &Part,
        upstream: Option<Tensor<3>>,
        sums: &GradientSums,
    ) -> Option<Tensor<3>> {
        let Self { embedding, blocks, from_head } = self;
        let mut upstream = from_head.or(upstream);
        for Block { unit, entered, sums: added_up } in blocks.into_iter().rev() {
            let entered = Activation::Hidden(entered);
            let (graph, _) =
                part.replay(added_up, || Graph::record(part, unit..unit + 1, entered, None, sums));
            upstream = graph.backward(upstream);
        }
        match embedding {
            Some(graph) => graph.backward(upstream),
            None => upstream,
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Distribution, Int};

    use super::*;
    use crate::config::{Family, Unit};
    use crate::data::MicroBatch;
    use crate::model::Architecture;

    const ARCH: Architecture = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 8,
        heads: 2,
        head_dim: None,
        kv_heads: 1,
        ffn: 16,
        context: 4,
        vocab: 11,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    };

    fn batch() -> MicroBatch {
        let tokens = vec![3; 4];
        let (inputs, targets) = (tokens.clone(), tokens);
        MicroBatch { samples: 1, tokens: 4, inputs, targets, mask: None, ids: vec![0], tag: 0 }
    }

    #[test]
    fn a_block_keeps_its_input_and_the_head_its_gradient() {
        let device = Device::flex();
        let units = [Unit::Embed, Unit::Block(0), Unit::Block(1), Unit::Block(2), Unit::Head];
        let hidden = || Tensor::random([1, 4, 8], Distribution::Default, &device);
        let ids = || Activation::Ids(Tensor::<2, Int>::zeros([1, 4], &device.clone().autodiff()));
        for (units, entered, blocks) in [
            (&units[..], ids(), vec![1, 2, 3]),
            (&units[..2], ids(), vec![1]),
            (&units[2..4], Activation::Hidden(hidden()), vec![0, 1]),
            (&units[3..], Activation::Hidden(hidden()), vec![0]),
        ] {
            let part = Part::new(&ARCH, units, 1, &device);
            let sums = part.params().gradient_sums();
            let batch = batch();
            let objective = Objective { batch: &batch, weight: 0.25 };
            let (kept, recorded) = Checkpoints::record(&part, entered, objective, &sums);
            assert_eq!(kept.blocks.iter().map(|block| block.unit).collect::<Vec<_>>(), blocks);
            assert_eq!(kept.embedding.is_some(), part.has_embedding());
            assert_eq!(kept.from_head.is_some(), part.has_head());
            assert_eq!(matches!(recorded, Recorded::Loss(_)), part.has_head());
            let differentiated = sums.take().iter().filter(|sum| sum.is_some()).count();
            assert_eq!(differentiated, if part.has_head() { 2 } else { 0 }, "the head's norm and matrix");
        }
    }
}
