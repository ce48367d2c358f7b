//! The memory of a stage, from its shapes: nothing is allocated to know it.

use serde::Serialize;

use crate::config::{Dtype, Family, StageUnits, Unit};
use crate::model::Architecture;

/// Bytes of an `f32`.
const F32: f64 = 4.0;

/// Micro-batches as memory sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchShape {
    /// Sequences of a micro-batch.
    pub samples: usize,
    /// Tokens of each.
    pub tokens: usize,
    /// Number format of activations.
    pub dtype: Dtype,
    /// Whether only the inputs of blocks are kept.
    pub checkpointing: bool,
    /// Micro-batches between their forward and their backward pass at a time, at most.
    pub in_flight: usize,
}

/// Most bytes of a stage at a time, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageMemory {
    /// Parameters, with the rounded copies of a run in bf16.
    pub parameters: u64,
    /// Their gradients.
    pub gradients: u64,
    /// The optimizer's two moments.
    pub moments: u64,
    /// What is kept of the micro-batches in flight for their backward passes.
    pub activations: u64,
    /// What a backward pass needs besides.
    pub scratch: u64,
    /// Tensors that wait to be sent or used, and encoded messages.
    pub messages: u64,
}

impl StageMemory {
    /// Without messages, which depend on the links.
    pub fn of_compute(arch: &Architecture, units: &StageUnits, shape: &BatchShape) -> Self {
        let sum = |of: fn(&Architecture, Unit) -> u64| -> f64 {
            units.iter().map(|unit| of(arch, unit) as f64).sum()
        };
        let trained = sum(Architecture::trainable);
        let (kept, again) = if shape.checkpointing {
            (checkpoints(arch, units, shape), kept(arch, Unit::Block(0), shape))
        } else {
            let kept = units.iter().map(|unit| kept(arch, unit, shape)).sum::<f64>()
                + left(arch, units, shape)
                - untracked(arch, units, shape);
            (kept, 0.0)
        };
        Self {
            parameters: parameters(arch, units, shape.dtype) as u64,
            gradients: (F32 * trained) as u64,
            moments: (2.0 * F32 * trained) as u64,
            activations: (kept * shape.in_flight as f64) as u64,
            scratch: (again + scratch(arch, units, shape)) as u64,
            messages: 0,
        }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        let Self { parameters, gradients, moments, activations, scratch, messages } = *self;
        [gradients, moments, activations, scratch, messages].into_iter().fold(parameters, u64::saturating_add)
    }
}

impl BatchShape {
    fn rows(&self) -> f64 {
        self.samples as f64 * self.tokens as f64
    }

    /// Bytes of an activation's value.
    fn width(&self) -> f64 {
        match self.dtype {
            Dtype::F32 => 4.0,
            Dtype::Bf16 => 2.0,
        }
    }
}

fn parameters(arch: &Architecture, units: &StageUnits, dtype: Dtype) -> f64 {
    let of_unit = |unit| {
        let (all, trained) = (arch.parameters(unit) as f64, arch.trainable(unit) as f64);
        match (dtype, unit) {
            // Rows are looked up in a table in f32.
            (Dtype::F32, _) | (Dtype::Bf16, Unit::Embed) => F32 * all,
            // Weights that are trained have a rounded copy; frozen ones are kept rounded alone.
            (Dtype::Bf16, _) => (F32 + 2.0) * trained + 2.0 * (all - trained),
        }
    };
    units.iter().map(of_unit).sum()
}

/// Bytes that the graph of a unit keeps of one micro-batch: the inputs of its operators, as each of them documents.
fn kept(arch: &Architecture, unit: Unit, shape: &BatchShape) -> f64 {
    let rows = shape.rows();
    let [d, f, vocab] = [arch.hidden, arch.ffn, arch.vocab].map(|n| n as f64);
    let [q, kv] = [arch.heads, arch.kv_heads].map(|heads| (heads * arch.head_dim()) as f64);
    match unit {
        // The ids.
        Unit::Embed => rows * 4.0,
        // What enters, its norm and the logits; two numbers of the norm and two of the loss for each row; its target.
        Unit::Head => rows * (shape.width() * (2.0 * d + vocab) + (2.0 + 2.0 + 1.0) * 4.0),
        Unit::Block(_) => {
            let qkv = q + 2.0 * kv;
            let head_norms = if arch.family == Family::Qwen3 { q + kv } else { 0.0 };
            let head_stats =
                if arch.family == Family::Qwen3 { 2.0 * (arch.heads + arch.kv_heads) as f64 } else { 0.0 };
            let mlp = if arch.family == Family::Gpt2 { 2.0 * f } else { 3.0 * f };
            let adapters =
                arch.lora.as_ref().map_or(0.0, |lora| (lora.rank * arch.adapted_layers().len()) as f64);
            // What enters either half, and its norm; queries, keys and values; what attention gives; the feed-forward
            // layer's inner values; what adapters narrow.
            let values = 4.0 * d + qkv + q + head_norms + mlp + adapters;
            // Two numbers of either norm, one of every head's softmax.
            let stats = 2.0 * 2.0 + head_stats + arch.heads as f64;
            rows * (shape.width() * values + 4.0 * stats)
        }
    }
}

/// What leaves a stage without a head is kept, too.
fn left(arch: &Architecture, units: &StageUnits, shape: &BatchShape) -> f64 {
    if units.head { 0.0 } else { shape.rows() * shape.width() * arch.hidden as f64 }
}

/// What enters the first block is not kept where nothing in front of it is trained.
fn untracked(arch: &Architecture, units: &StageUnits, shape: &BatchShape) -> f64 {
    let frozen = arch.lora.is_some() && units.embed && !units.blocks.is_empty();
    // Nor are the two numbers of its norm.
    if frozen { shape.rows() * (shape.width() * arch.hidden as f64 + 2.0 * 4.0) } else { 0.0 }
}

/// The input of every block, the gradient from the head, the embedding's ids, and its result where no block has it.
fn checkpoints(arch: &Architecture, units: &StageUnits, shape: &BatchShape) -> f64 {
    let stream = shape.rows() * shape.width() * arch.hidden as f64;
    let ids = if units.embed { kept(arch, Unit::Embed, shape) } else { 0.0 };
    let result = usize::from(units.embed && units.blocks.is_empty());
    let streams = units.blocks.len() + usize::from(units.head) + result;
    ids + stream * streams as f64
}

/// The largest intermediate results of a pass, in f32: of a block the gradients around the feed-forward layer; of the head
/// those around its norm, where blocks run twice also its graph.
fn scratch(arch: &Architecture, units: &StageUnits, shape: &BatchShape) -> f64 {
    let [d, f] = [arch.hidden, arch.ffn].map(|n| n as f64);
    let block = if units.blocks.is_empty() { 0.0 } else { shape.rows() * F32 * (2.0 * f + 4.0 * d) };
    let graph = if shape.checkpointing { kept(arch, Unit::Head, shape) } else { 0.0 };
    // In bf16 the products of the head are made in f32 before they are rounded.
    let wide = if shape.dtype == Dtype::Bf16 { arch.vocab as f64 } else { 0.0 };
    let head = if units.head { graph + shape.rows() * F32 * (4.0 * d + wide) } else { 0.0 };
    block.max(head)
}
