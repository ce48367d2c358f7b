//! What a stage computes: forward and backward passes of its part, micro-batch by micro-batch.

mod checkpoints;
mod graph;
mod host;

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};

pub use self::host::HostTensor;

use self::checkpoints::Checkpoints;
use self::graph::{Graph, Objective, Recorded};
use self::host::{download, ids, loss_of, upload, values};
use crate::data::MicroBatch;
use crate::model::{Activation, GradientSums, KvCache, Part};

/// What a forward pass ends in.
#[derive(Debug)]
pub enum Forwarded {
    /// An activation for the next stage.
    Hidden(HostTensor),
    /// Sum of the losses of the targets that count, in nats.
    Loss(f64),
}

/// What a pass over further tokens of a sequence ends in.
#[derive(Debug)]
pub enum Extended {
    /// An activation for the next part.
    Hidden(HostTensor),
    /// Logits `[tokens, vocab]`, row-major.
    Logits(Vec<f32>),
}

/// A stage's part of the model with the micro-batches it has in flight.
#[derive(Debug)]
pub struct Compute {
    part: Part,
    device: Device,
    checkpointing: bool,
    in_flight: BTreeMap<u32, InFlight>,
    gradients: GradientSums,
}

/// What is kept of a micro-batch between its forward and its backward pass.
#[derive(Debug)]
enum InFlight {
    Graph(Box<Graph>),
    Checkpoints(Box<Checkpoints>),
}

impl Compute {
    /// Wraps a part whose parameters live on `device` (without autodiff).
    pub fn new(part: Part, device: Device) -> Self {
        let gradients = part.params().gradient_sums();
        Self { part, device, checkpointing: false, in_flight: BTreeMap::new(), gradients }
    }

    /// Whether of a micro-batch only the inputs of the blocks are kept, which are run a second time in the backward pass.
    /// The gradients are the same to the bit.
    #[must_use]
    pub fn checkpointing(self, on: bool) -> Self {
        Self { checkpointing: on, ..self }
    }

    /// The part of the model.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The part of the model, to be updated.
    pub fn part_mut(&mut self) -> &mut Part {
        &mut self.part
    }

    /// The forward pass of micro-batch `index`; what its backward pass needs is kept.
    ///
    /// `entered` is the previous stage's activation, `None` on the first stage. `weight` is what one token's loss
    /// counts in the step's mean.
    pub fn forward(
        &mut self,
        index: u32,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
        weight: f32,
    ) -> Forwarded {
        let Self { part, device, gradients, .. } = self;
        part.begin_forward();
        let tokens = || ids(&batch.inputs, [batch.samples, batch.tokens], &device.clone().autodiff());
        let entered = entered.map_or_else(
            || Activation::Ids(tokens()),
            |h| Activation::Hidden(upload(h, part.params().dtype(), device)),
        );
        let objective = Objective { batch, weight };
        let (kept, recorded) = if self.checkpointing {
            let (kept, recorded) = Checkpoints::record(part, entered, objective, gradients);
            (InFlight::Checkpoints(Box::new(kept)), recorded)
        } else {
            let units = 0..part.units().len();
            let (graph, recorded) = Graph::record(part, units, entered, Some(objective), gradients);
            (InFlight::Graph(Box::new(graph)), recorded)
        };
        self.in_flight.insert(index, kept);
        match recorded {
            Recorded::Hidden(h) => Forwarded::Hidden(download(h)),
            Recorded::Loss(sum) => Forwarded::Loss(sum),
        }
    }

    /// The backward pass of micro-batch `index`: adds to the gradients (frozen parameters have none) and returns the one
    /// of the activation that entered. `upstream` is the gradient of the activation that left, `None` on the last stage.
    ///
    /// # Panics
    /// When the micro-batch had no forward pass.
    pub fn backward(&mut self, index: u32, upstream: Option<HostTensor>) -> Option<HostTensor> {
        let kept = self.in_flight.remove(&index).expect("the schedule runs the forward pass first");
        let Self { part, device, gradients, .. } = self;
        part.begin_backward();
        let upstream = upstream.map(|g| upload(g, part.params().dtype(), device));
        let gradient = match kept {
            InFlight::Graph(graph) => graph.backward(upstream),
            InFlight::Checkpoints(kept) => kept.backward(part, upstream, gradients),
        };
        gradient.map(download)
    }

    /// Gives up a micro-batch that is lost.
    pub fn forget(&mut self, index: u32) {
        self.in_flight.remove(&index);
    }

    /// The step's gradients in parameter order; the sums start anew.
    pub fn take_gradients(&mut self) -> Vec<Option<Tensor<1>>> {
        self.gradients.take()
    }

    /// A forward pass without a graph.
    pub fn evaluate(&self, batch: &MicroBatch, entered: Option<HostTensor>) -> Forwarded {
        self.part.begin_forward();
        let leaves = self.part.params().constants();
        let input = match entered {
            Some(h) => Activation::Hidden(upload(h, self.part.params().dtype(), &self.device)),
            None => Activation::Ids(ids(&batch.inputs, [batch.samples, batch.tokens], &self.device)),
        };
        match self.part.forward(&leaves, input) {
            Activation::Logits(logits) => Forwarded::Loss(loss_of(&self.part, logits, batch).1),
            Activation::Hidden(h) => Forwarded::Hidden(download(h)),
            Activation::Ids(_) => unreachable!("a stage owns at least one unit"),
        }
    }

    /// An empty cache with room for `capacity` tokens of one sequence.
    ///
    /// # Panics
    /// When the model's context is shorter.
    pub fn cache(&self, capacity: usize) -> KvCache {
        KvCache::new(&self.part, capacity, &self.device)
    }

    /// A forward pass without a graph over `tokens`, which follow those in `cache`; `entered` is what they are behind the
    /// previous part, `None` on the first. The last part gives the logits of the last `last` of them.
    ///
    /// # Panics
    /// When the cache has no room for them.
    pub fn extend(
        &self,
        tokens: &[u32],
        entered: Option<HostTensor>,
        cache: &mut KvCache,
        last: usize,
    ) -> Extended {
        self.part.begin_forward();
        let leaves = self.part.params().constants();
        let input = match entered {
            Some(h) => Activation::Hidden(upload(h, self.part.params().dtype(), &self.device)),
            None => Activation::Ids(ids(tokens, [1, tokens.len()], &self.device)),
        };
        match self.part.forward_cached(&leaves, input, cache, last) {
            Activation::Logits(logits) => Extended::Logits(self.part.whole_logits(values(logits))),
            Activation::Hidden(h) => Extended::Hidden(download(h)),
            Activation::Ids(_) => unreachable!("a stage owns at least one unit"),
        }
    }
}
