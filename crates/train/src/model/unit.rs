//! The units a stage can own, and the part of a model that a stage is.

use std::fmt;
use std::ops::Range;

use burn::tensor::{Device, Int, Tensor};

use super::attention::Rotary;
use super::block::Block;
use super::embedding::Embedding;
use super::head::Head;
use super::{Architecture, Family, Leaves, ParamSet};

/// One unit of a model, in order: the embedding, each block, the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitId {
    /// Token embedding.
    Embed,
    /// Block of this index.
    Block(usize),
    /// Final norm and output matrix.
    Head,
}

impl UnitId {
    /// All units of a model of `layers` blocks, in order.
    pub fn all(layers: usize) -> Vec<UnitId> {
        let blocks = (0..layers).map(UnitId::Block);
        std::iter::once(UnitId::Embed).chain(blocks).chain([UnitId::Head]).collect()
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitId::Embed => f.write_str("embed"),
            UnitId::Block(index) => write!(f, "{index}"),
            UnitId::Head => f.write_str("head"),
        }
    }
}

#[derive(Debug)]
enum Unit {
    Embed(Embedding),
    Block(Block),
    Head(Head),
}

/// What enters or leaves a part of the model.
#[derive(Clone, Debug)]
pub enum Activation {
    /// Token ids `[samples, tokens]`, before the embedding.
    Ids(Tensor<2, Int>),
    /// The residual stream `[samples, tokens, hidden]`.
    Hidden(Tensor<3>),
    /// Logits `[samples * tokens, vocab]`, after the head.
    Logits(Tensor<2>),
}

/// A contiguous run of units with their parameters: what one stage computes.
#[derive(Debug)]
pub struct Part {
    arch: Architecture,
    ids: Vec<UnitId>,
    units: Vec<Unit>,
    /// Positions in `params` of each unit's parameters.
    ranges: Vec<Range<usize>>,
    params: ParamSet,
}

impl Part {
    /// Builds the units `ids` of `arch` on `device` (without autodiff), started from `seed`.
    pub fn new(arch: &Architecture, ids: &[UnitId], seed: u64, device: &Device) -> Self {
        let mut params = ParamSet::new(device.clone(), seed);
        let mut units = Vec::with_capacity(ids.len());
        let mut ranges = Vec::with_capacity(ids.len());
        for id in ids {
            let start = params.len();
            units.push(match id {
                UnitId::Embed => Unit::Embed(Embedding::new(&mut params, arch)),
                UnitId::Block(index) => Unit::Block(Block::new(&mut params, arch, *index)),
                UnitId::Head => Unit::Head(Head::new(&mut params, arch)),
            });
            ranges.push(start..params.len());
        }
        Self { arch: arch.clone(), ids: ids.to_vec(), units, ranges, params }
    }

    /// The units and the positions of their parameters.
    pub fn units(&self) -> impl Iterator<Item = (UnitId, Range<usize>)> {
        self.ids.iter().copied().zip(self.ranges.iter().cloned())
    }

    /// The model this is a part of.
    pub fn architecture(&self) -> &Architecture {
        &self.arch
    }

    /// All parameters of the part.
    pub fn params(&self) -> &ParamSet {
        &self.params
    }

    /// All parameters of the part, to be changed.
    pub fn params_mut(&mut self) -> &mut ParamSet {
        &mut self.params
    }

    /// Whether the part starts with the embedding.
    pub fn has_embedding(&self) -> bool {
        self.ids.first() == Some(&UnitId::Embed)
    }

    /// Whether the part ends with the head.
    pub fn has_head(&self) -> bool {
        self.ids.last() == Some(&UnitId::Head)
    }

    /// Positions of the two copies of a tied matrix, where this part has them: (embedding, head).
    pub fn tied(&self) -> (Option<usize>, Option<usize>) {
        if !self.arch.tied {
            return (None, None);
        }
        let embedding = self.params.position(super::embedding::token_name(self.arch.family));
        (embedding, self.params.position(super::head::OUTPUT_NAME))
    }

    /// Runs the units in order.
    ///
    /// # Panics
    /// When `x` is not what the first unit takes: ids for the embedding, the residual stream for the others.
    pub fn forward(&self, leaves: &Leaves, x: Activation) -> Activation {
        let (tokens, device) = match &x {
            Activation::Ids(ids) => (ids.dims()[1], ids.device()),
            Activation::Hidden(h) => (h.dims()[1], h.device()),
            Activation::Logits(_) => unreachable!("nothing follows the head"),
        };
        let rotary = (self.arch.family == Family::Llama).then(|| Rotary::new(&self.arch, tokens, &device));
        self.units.iter().fold(x, |x, unit| match (unit, x) {
            (Unit::Embed(embedding), Activation::Ids(ids)) => Activation::Hidden(embedding.forward(leaves, ids)),
            (Unit::Block(block), Activation::Hidden(h)) => {
                Activation::Hidden(block.forward(leaves, h, rotary.as_ref()))
            }
            (Unit::Head(head), Activation::Hidden(h)) => Activation::Logits(head.forward(leaves, h)),
            (unit, x) => panic!("{unit:?} does not take {x:?}"),
        })
    }
}
