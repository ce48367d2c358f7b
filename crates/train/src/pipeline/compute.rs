//! What a stage computes: forward and backward passes of its part, micro-batch by micro-batch.

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::data::MicroBatch;
use crate::model::{Activation, KvCache, Leaves, Part, token_losses};

/// A tensor in host memory, on its way between a stage and a link: `[samples, tokens, channels]`, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Samples, tokens, channels.
    pub shape: [usize; 3],
    /// The values.
    pub values: Vec<f32>,
}

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
    in_flight: BTreeMap<u32, InFlight>,
    gradients: Vec<Option<Tensor<1>>>,
}

/// The graph of one micro-batch between its forward and its backward pass.
#[derive(Debug)]
struct InFlight {
    leaves: Leaves,
    entered: Option<Tensor<3>>,
    left: Output,
}

#[derive(Debug)]
enum Output {
    Hidden(Tensor<3>),
    Loss(Tensor<1>),
}

impl Compute {
    /// Wraps a part whose parameters live on `device` (without autodiff).
    pub fn new(part: Part, device: Device) -> Self {
        let gradients = vec![None; part.params().len()];
        Self { part, device, in_flight: BTreeMap::new(), gradients }
    }

    /// The part of the model.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The part of the model, to be updated.
    pub fn part_mut(&mut self) -> &mut Part {
        &mut self.part
    }

    /// The forward pass of micro-batch `index`; its graph is kept for the backward pass.
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
        let device = self.device.clone().autodiff();
        let leaves = self.part.params().leaves();
        let entered = entered.map(|h| upload(h, &device).require_grad());
        let input = match &entered {
            Some(h) => Activation::Hidden(h.clone()),
            None => Activation::Ids(ids(&batch.inputs, [batch.samples, batch.tokens], &device)),
        };
        let (left, forwarded) = match self.part.forward(&leaves, input) {
            Activation::Logits(logits) => {
                let (loss, sum) = loss_of(logits, batch, &device);
                (Output::Loss(loss * weight), Forwarded::Loss(sum))
            }
            Activation::Hidden(h) => {
                let out = download(h.clone().inner());
                (Output::Hidden(h), Forwarded::Hidden(out))
            }
            Activation::Ids(_) => unreachable!("a stage owns at least one unit"),
        };
        self.in_flight.insert(index, InFlight { leaves, entered, left });
        forwarded
    }

    /// The backward pass of micro-batch `index`: adds to the gradients (frozen parameters have none) and returns the one
    /// of the activation that entered. `upstream` is the gradient of the activation that left, `None` on the last stage.
    ///
    /// # Panics
    /// When the micro-batch had no forward pass.
    pub fn backward(&mut self, index: u32, upstream: Option<HostTensor>) -> Option<HostTensor> {
        let InFlight { leaves, entered, left } =
            self.in_flight.remove(&index).expect("the schedule runs the forward pass first");
        if entered.is_none() && !self.part.trains() {
            return None;
        }
        let mut tape = match (left, upstream) {
            (Output::Loss(loss), None) => loss.backward(),
            (Output::Hidden(h), Some(up)) => {
                // Burn's backward takes no gradient; the product's derivative is that gradient, to the bit.
                let up = upload(up, &h.device());
                (h * up).sum().backward()
            }
            _ => unreachable!("only the last stage has a loss, and only it gets no gradient"),
        };
        for (sum, gradient) in self.gradients.iter_mut().zip(leaves.gradients(&mut tape)) {
            *sum = match (sum.take(), gradient) {
                (Some(sum), Some(gradient)) => Some(sum + gradient),
                (sum, gradient) => sum.or(gradient),
            };
        }
        entered.map(|h| download(h.grad_remove(&mut tape).expect("the part passes a gradient through")))
    }

    /// Gives up a micro-batch that is lost.
    pub fn forget(&mut self, index: u32) {
        self.in_flight.remove(&index);
    }

    /// The step's gradients in parameter order; the sums start anew.
    pub fn take_gradients(&mut self) -> Vec<Option<Tensor<1>>> {
        let fresh = vec![None; self.gradients.len()];
        std::mem::replace(&mut self.gradients, fresh)
    }

    /// A forward pass without a graph.
    pub fn evaluate(&self, batch: &MicroBatch, entered: Option<HostTensor>) -> Forwarded {
        let leaves = self.part.params().constants();
        let input = match entered {
            Some(h) => Activation::Hidden(upload(h, &self.device)),
            None => Activation::Ids(ids(&batch.inputs, [batch.samples, batch.tokens], &self.device)),
        };
        match self.part.forward(&leaves, input) {
            Activation::Logits(logits) => Forwarded::Loss(loss_of(logits, batch, &self.device).1),
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
        let leaves = self.part.params().constants();
        let input = match entered {
            Some(h) => Activation::Hidden(upload(h, &self.device)),
            None => Activation::Ids(ids(tokens, [1, tokens.len()], &self.device)),
        };
        match self.part.forward_cached(&leaves, input, cache, last) {
            Activation::Logits(logits) => Extended::Logits(values(logits)),
            Activation::Hidden(h) => Extended::Hidden(download(h)),
            Activation::Ids(_) => unreachable!("a stage owns at least one unit"),
        }
    }
}

fn loss_of(logits: Tensor<2>, batch: &MicroBatch, device: &Device) -> (Tensor<1>, f64) {
    let targets = ids(&batch.targets, [batch.samples, batch.tokens], device).flatten::<1>(0, 1);
    let losses = token_losses(logits, targets);
    let loss = match &batch.mask {
        Some(mask) => (losses * weights(mask, device)).sum(),
        None => losses.sum(),
    };
    let sum: f32 = loss.clone().into_scalar();
    (loss, f64::from(sum))
}

/// 1 for a target that counts, 0 for another.
fn weights(mask: &[bool], device: &Device) -> Tensor<1> {
    let weights: Vec<f32> = mask.iter().map(|&counts| f32::from(u8::from(counts))).collect();
    Tensor::from_data(TensorData::new(weights, [mask.len()]), device)
}

/// `shape: [samples, tokens]`.
fn ids(tokens: &[u32], shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i64> = tokens.iter().map(|&id| i64::from(id)).collect();
    Tensor::from_data(TensorData::new(ids, shape), device)
}

fn upload(tensor: HostTensor, device: &Device) -> Tensor<3> {
    Tensor::from_data(TensorData::new(tensor.values, tensor.shape), device)
}

fn download(tensor: Tensor<3>) -> HostTensor {
    let shape = tensor.dims();
    HostTensor { shape, values: values(tensor) }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("activations are f32")
}
