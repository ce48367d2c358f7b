//! The units a stage can own, and the part of a model that a stage is.

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor};

use super::attention::Rotary;
use super::block::Block;
use super::cache::KvCache;
use super::embedding::Embedding;
use super::head::Head;
use super::{Architecture, GradientSums, Leaves, ParamSet, Parameter, Shard, columns, token_losses};
use crate::config::{Dtype, Unit};
use crate::tensor_parallel::{Sums, TensorGroup};

#[derive(Debug)]
enum Built {
    Embed(Embedding),
    Block(Box<Block>),
    Head(Head),
}

/// What enters or leaves a part of the model.
#[derive(Clone, Debug)]
pub enum Activation {
    /// Token ids `[samples, tokens]`, before the embedding.
    Ids(Tensor<2, Int>),
    /// The residual stream `[samples, tokens, hidden]`.
    Hidden(Tensor<3>),
    /// Logits `[samples * tokens, vocab]`, after the head; a rank's columns of them where ranks share the model.
    Logits(Tensor<2>),
}

/// A contiguous run of units with their parameters: what one stage computes.
#[derive(Debug)]
pub struct Part {
    arch: Architecture,
    ids: Vec<Unit>,
    units: Vec<Built>,
    /// Positions in `params` of each unit's parameters.
    ranges: Vec<Range<usize>>,
    params: ParamSet,
}

/// What the parameters of a part are before anything is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All zero.
    Empty,
    /// What this seed gives.
    Seeded(u64),
    /// Those of adapters are what this seed gives, all others zero.
    Adapters(u64),
}

impl Part {
    /// Builds the units `ids` of `arch` on `device` (without autodiff), started from `seed`.
    pub fn new(arch: &Architecture, ids: &[Unit], seed: u64, device: &Device) -> Self {
        Self::of_shard(arch, ids, Start::Seeded(seed), Shard::WHOLE, device)
    }

    /// As [`Part::new`], all parameters zero: their values are still to be loaded.
    pub fn empty(arch: &Architecture, ids: &[Unit], device: &Device) -> Self {
        Self::of_shard(arch, ids, Start::Empty, Shard::WHOLE, device)
    }

    /// One rank's share of the units, of the same values as the whole ones have. `shard` is one of the model's.
    ///
    /// It computes together with the others: see [`Part::join`].
    pub fn of_shard(arch: &Architecture, ids: &[Unit], start: Start, shard: Shard, device: &Device) -> Self {
        let params = match start {
            Start::Empty => ParamSet::new(device.clone(), None),
            Start::Seeded(seed) => ParamSet::new(device.clone(), Some(seed)),
            Start::Adapters(seed) => ParamSet::new(device.clone(), None).with_adapters_from(seed),
        };
        Self::build(arch, ids, params.of_shard(shard))
    }

    /// The same part, computing with the other ranks of `group`.
    ///
    /// # Panics
    /// When it is not the share of the group's rank.
    #[must_use]
    pub fn join(mut self, group: &Arc<TensorGroup>) -> Self {
        let shard = self.params.shard();
        assert_eq!([shard.rank(), shard.ranks()], [group.rank(), group.ranks()], "rank and ranks of a shard");
        self.params.set_group(group.clone());
        self
    }

    fn build(arch: &Architecture, ids: &[Unit], mut params: ParamSet) -> Self {
        if arch.lora.is_some() {
            params = params.frozen();
        }
        let mut units = Vec::with_capacity(ids.len());
        let mut ranges = Vec::with_capacity(ids.len());
        for id in ids {
            let start = params.len();
            units.push(match id {
                Unit::Embed => Built::Embed(Embedding::new(&mut params, arch)),
                Unit::Block(index) => Built::Block(Box::new(Block::new(&mut params, arch, *index))),
                Unit::Head => Built::Head(Head::new(&mut params, arch)),
            });
            ranges.push(start..params.len());
        }
        Self { arch: arch.clone(), ids: ids.to_vec(), units, ranges, params }
    }

    /// The same part, computing in `dtype`.
    #[must_use]
    pub fn in_dtype(mut self, dtype: Dtype) -> Self {
        self.params.set_dtype(dtype);
        self
    }

    /// The units and the positions of their parameters.
    pub fn units(&self) -> impl ExactSizeIterator<Item = (Unit, Range<usize>)> {
        self.ids.iter().copied().zip(self.ranges.iter().cloned())
    }

    /// The model this is a part of.
    pub fn architecture(&self) -> &Architecture {
        &self.arch
    }

    /// The ranks that it computes with, if there are others.
    pub fn group(&self) -> Option<&Arc<TensorGroup>> {
        self.params.group()
    }

    /// Tells the other ranks' sums that a forward pass begins: see [`TensorGroup::begin_forward`].
    pub fn begin_forward(&self) {
        if let Some(group) = self.group() {
            group.begin_forward();
        }
    }

    /// The same for a backward pass.
    pub fn begin_backward(&self) {
        if let Some(group) = self.group() {
            group.begin_backward();
        }
    }

    /// Runs a piece of a forward pass that will be run again: see [`TensorGroup::record`].
    pub fn record<T>(&self, piece: impl FnOnce() -> T) -> (T, Sums) {
        match self.group() {
            Some(group) => group.record(piece),
            None => (piece(), Sums::default()),
        }
    }

    /// Runs a piece of a forward pass again: see [`TensorGroup::replay`].
    pub fn replay<T>(&self, sums: Sums, piece: impl FnOnce() -> T) -> T {
        match self.group() {
            Some(group) => group.replay(sums, piece),
            None => piece(),
        }
    }

    /// Cross-entropy of each token, in nats: of what the head gives and targets `[n]` to `[n]`, the same on every rank.
    pub fn token_losses(&self, logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        let Some(group) = self.group() else { return token_losses(logits, targets) };
        let first = self.params.shard().share(self.arch.vocab).start;
        group.cross_entropy(logits, first, targets, self.arch.vocab)
    }

    /// The logits of the whole vocabulary, row-major, of which `logits` are this rank's columns.
    pub fn whole_logits(&self, logits: Vec<f32>) -> Vec<f32> {
        match self.group() {
            Some(group) => columns::gather(group, self.params.shard(), self.arch.vocab, &logits),
            None => logits,
        }
    }

    /// All parameters of the part.
    pub fn params(&self) -> &ParamSet {
        &self.params
    }

    /// All parameters of the part, to be changed.
    pub fn params_mut(&mut self) -> &mut ParamSet {
        &mut self.params
    }

    /// Whether training changes any parameter of the part: that of a stage with the embedding alone does not where
    /// adapters are trained.
    pub fn trains(&self) -> bool {
        self.params.iter().any(|parameter| parameter.trainable)
    }

    /// Whether the part starts with the embedding.
    pub fn has_embedding(&self) -> bool {
        self.ids.first() == Some(&Unit::Embed)
    }

    /// Whether the part ends with the head.
    pub fn has_head(&self) -> bool {
        self.ids.last() == Some(&Unit::Head)
    }

    /// Positions of the two copies of a tied matrix that is trained, where this part has them: (embedding, head).
    pub fn tied(&self) -> (Option<usize>, Option<usize>) {
        if !self.arch.trains_tied() {
            return (None, None);
        }
        let embedding = self.params.position(super::embedding::token_name(self.arch.family));
        (embedding, self.params.position(super::head::OUTPUT_NAME))
    }

    /// The name of `parameter` in a file of a model that is `tied` or not, whatever this one is: of a tied matrix there is only
    /// the embedding's copy.
    pub fn name_in<'a>(&self, tied: bool, parameter: &'a Parameter) -> &'a str {
        if tied && parameter.name == super::head::OUTPUT_NAME {
            super::embedding::token_name(self.arch.family)
        } else {
            &parameter.name
        }
    }

    /// Fresh autodiff leaves for the parameters of `units` (positions), whose backward pass adds to `sums`, and constants
    /// for all others.
    ///
    /// # Panics
    /// When there are not so many units.
    pub fn leaves_of(&self, units: Range<usize>, sums: &GradientSums) -> Leaves {
        let ranges = &self.ranges[units];
        let params =
            ranges.first().map_or(0, |range| range.start)..ranges.last().map_or(0, |range| range.end);
        self.params.leaves_of(params, sums)
    }

    /// Runs the units in order.
    ///
    /// # Panics
    /// When `x` is not what the first unit takes: ids for the embedding, the residual stream for the others.
    pub fn forward(&self, leaves: &Leaves, x: Activation) -> Activation {
        self.forward_units(0..self.units.len(), leaves, x)
    }

    /// Runs some of the units (positions).
    ///
    /// # Panics
    /// As [`Part::forward`]; when there are not so many units.
    pub fn forward_units(&self, units: Range<usize>, leaves: &Leaves, x: Activation) -> Activation {
        self.run(units, leaves, x, None, usize::MAX)
    }

    /// As [`Part::forward`], for tokens of one sample that follow those that `cache` has seen. The head gives the logits
    /// of the last `last` tokens alone.
    ///
    /// # Panics
    /// As [`Part::forward`]; for more than one sample, or more tokens than the cache has room for.
    pub fn forward_cached(
        &self,
        leaves: &Leaves,
        x: Activation,
        cache: &mut KvCache,
        last: usize,
    ) -> Activation {
        self.run(0..self.units.len(), leaves, x, Some(cache), last)
    }

    fn run(
        &self,
        units: Range<usize>,
        leaves: &Leaves,
        x: Activation,
        mut cache: Option<&mut KvCache>,
        last: usize,
    ) -> Activation {
        let alone = self.params.shard().is_whole();
        assert!(alone || self.group().is_some(), "a shard computes with the other ranks");
        let [samples, tokens] = match &x {
            Activation::Ids(ids) => ids.dims(),
            Activation::Hidden(h) => [h.dims()[0], h.dims()[1]],
            Activation::Logits(_) => unreachable!("nothing follows the head"),
        };
        let start = cache.as_mut().map_or(0, |cache| cache.advance(samples, tokens));
        let rotary = || Rotary::new(&self.arch, start, start + tokens);
        let rotary = self.arch.is_rotary().then(rotary);
        self.units[units].iter().enumerate().fold(x, |x, (index, unit)| match (unit, x) {
            (Built::Embed(embedding), Activation::Ids(ids)) => {
                Activation::Hidden(embedding.forward(leaves, ids, start))
            }
            (Built::Block(block), Activation::Hidden(h)) => {
                let cache = cache.as_mut().map(|cache| cache.layer(index));
                Activation::Hidden(block.forward(leaves, h, rotary.as_ref(), cache))
            }
            (Built::Head(head), Activation::Hidden(h)) => {
                let h = if last < tokens { h.narrow(1, tokens - last, last) } else { h };
                Activation::Logits(head.forward(leaves, h))
            }
            (unit, x) => panic!("{unit:?} does not take {x:?}"),
        })
    }
}
