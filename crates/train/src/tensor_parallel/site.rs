//! Where ranks add something up.

use thinwire_codec::{CodecSpec, DType, RawSettings};
use thinwire_collective::AllReduceSpec;

/// A place in a model where its ranks add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Behind the embedding: of each token's vector one rank has it and the others nothing.
    Embedding,
    /// Behind the attention or the feed-forward layer of a block, and in front of it on the way back: what Echo is for.
    Layer {
        /// Counted from the model's first one, two a block.
        index: usize,
        /// How many the model has.
        of: usize,
    },
    /// In front of the output matrix, on the way back.
    Head,
}

impl Site {
    /// Those of block `block` of `blocks`: behind the attention, and behind the feed-forward layer.
    pub fn of_block(block: usize, blocks: usize) -> [Self; 2] {
        [0, 1].map(|layer| Self::Layer { index: 2 * block + layer, of: 2 * blocks })
    }

    /// `embedding`, `attention`, `mlp` or `head`, and the block that a layer is in.
    pub fn name(self) -> (&'static str, Option<usize>) {
        match self {
            Self::Embedding => ("embedding", None),
            Self::Layer { index, .. } => (if index % 2 == 0 { "attention" } else { "mlp" }, Some(index / 2)),
            Self::Head => ("head", None),
        }
    }

    /// How values travel here. Echo is for the layers: at the two ends of the model a compressed sum is one in bf16.
    pub(super) fn codec(self, spec: &AllReduceSpec) -> CodecSpec {
        match (self, spec) {
            (Self::Layer { index, of }, spec) => spec.codec(index, of),
            (_, AllReduceSpec::Exact) => raw(DType::F32),
            _ => raw(DType::BF16),
        }
    }
}

pub(super) fn raw(dtype: DType) -> CodecSpec {
    CodecSpec::Raw(RawSettings { dtype })
}
