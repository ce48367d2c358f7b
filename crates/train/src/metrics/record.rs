//! The lines of `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use super::all_reduce::AllReduceReport;
use super::event::{Direction, LinkReport, StageTimes};
use super::float;

/// One line of `metrics.jsonl`; the field `kind` holds the variant's name in kebab case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// An optimizer step; a file has each step once.
    Step(StepRecord),
    /// An evaluation on held-out text; at most one a step.
    Eval(EvalRecord),
}

impl Record {
    /// Steps done when the line was written.
    pub fn step(&self) -> u64 {
        match self {
            Record::Step(record) => record.step,
            Record::Eval(record) => record.step,
        }
    }
}

/// What all stages together did in one optimizer step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step, from 1.
    pub step: u64,
    /// Mean loss over the step's tokens, in nats a token.
    #[serde(with = "float")]
    pub loss: f64,
    /// `exp(loss)`.
    #[serde(with = "float")]
    pub perplexity: f64,
    /// Learning rate of this step.
    #[serde(with = "float")]
    pub learning_rate: f64,
    /// Global gradient norm before clipping.
    #[serde(with = "float")]
    pub gradient_norm: f64,
    /// Whether the update was left out because of a value that was not finite.
    pub skipped: bool,
    /// Tokens of the step.
    pub tokens: u64,
    /// Wall-clock seconds of the slowest stage.
    pub seconds: f64,
    /// `tokens / seconds`.
    #[serde(with = "float")]
    pub tokens_per_second: f64,
    /// Every link direction whose sender was heard, ordered by sender, receiver and direction.
    pub links: Vec<LinkRecord>,
    /// What the ranks of every stage that was heard sent each other, ordered by stage and direction; nothing where stages have one
    /// rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_reduces: Vec<AllReduceRecord>,
    /// Every stage that was heard, in order.
    pub stages: Vec<StageRecord>,
}

/// What one direction of a link carried since the step before, an evaluation in between included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Activations or gradients.
    pub direction: Direction,
    /// Bytes that left, frame headers included.
    pub bytes: u64,
    /// The same since the process started.
    pub total_bytes: u64,
    /// Bits the codec spent on an element; `null` if nothing was sent.
    pub bits_per_element: Option<f64>,
    /// `sum (decoded - x)^2 / sum x^2` over the measured messages; `null` if none was measured.
    #[serde(with = "float::option")]
    pub rel_sq_error: Option<f64>,
    /// Messages of tensors.
    #[serde(default)]
    pub messages: u64,
    /// Those of tensors below the codec's `raw_below`, which were sent raw.
    #[serde(default)]
    pub raw_messages: u64,
    /// Bytes of those, frame headers not included.
    #[serde(default)]
    pub raw_bytes: u64,
}

impl LinkRecord {
    /// The difference between two reports of the same direction.
    pub(super) fn between(earlier: Option<&LinkReport>, now: &LinkReport) -> LinkRecord {
        let step = now.since(earlier);
        LinkRecord {
            from: now.from,
            to: now.to,
            direction: now.direction,
            bytes: step.wire_bytes,
            total_bytes: now.wire_bytes,
            bits_per_element: step.bits_per_element(),
            rel_sq_error: step.rel_sq_error(),
            messages: step.messages,
            raw_messages: step.raw_messages,
            raw_bytes: step.raw_bytes,
        }
    }
}

/// What the ranks of a stage sent each other since the step before, an evaluation in between included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AllReduceRecord {
    /// The stage.
    pub stage: usize,
    /// Its ranks.
    pub ranks: usize,
    /// Activations, or their gradients.
    pub direction: Direction,
    /// Tensors added up.
    pub calls: u64,
    /// Values of those tensors.
    pub elements: u64,
    /// Bytes that all ranks together sent for them.
    pub bytes: u64,
    /// The same since the process started.
    pub total_bytes: u64,
    /// Bytes that they would have sent with every value as f32.
    pub f32_bytes: u64,
    /// Bits a value took each time it was sent; `null` if nothing was.
    pub bits_per_element: Option<f64>,
}

impl AllReduceRecord {
    /// The difference between two reports of the same ranks and direction.
    pub(super) fn between(earlier: Option<&AllReduceReport>, now: &AllReduceReport) -> AllReduceRecord {
        let step = now.since(earlier);
        AllReduceRecord {
            stage: now.stage,
            ranks: now.ranks,
            direction: now.direction,
            calls: step.calls,
            elements: step.elements,
            bytes: step.bytes,
            total_bytes: now.bytes,
            f32_bytes: step.f32_bytes,
            bits_per_element: step.bits_per_element(),
        }
    }
}

/// Where one stage's time went in one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// The stage.
    pub stage: usize,
    /// Wall-clock seconds of the step on this stage.
    pub seconds: f64,
    /// Where they went.
    pub times: StageTimes,
}

/// An evaluation on held-out text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalRecord {
    /// Steps done before the evaluation.
    pub step: u64,
    /// Mean loss in nats a token.
    #[serde(with = "float")]
    pub loss: f64,
    /// `exp(loss)`.
    #[serde(with = "float")]
    pub perplexity: f64,
    /// Tokens evaluated.
    pub tokens: u64,
    /// Wall-clock seconds of the evaluation.
    pub seconds: f64,
}
