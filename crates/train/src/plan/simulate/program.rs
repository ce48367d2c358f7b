//! What a stage's computing thread does in a step, one thing after the other.

use super::Timing;
use crate::pipeline::{Action, actions};

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Previous,
    Next,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A micro-batch's activation or gradient.
    Tensor,
    /// That of the end of a step.
    Control,
}

/// Waits for the next message from a side, computes, sends to a side.
///
/// A message needs no name: each side's are sent and waited for in the same order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) wait: Option<Side>,
    pub(super) seconds: f64,
    pub(super) send: Option<(Side, Message)>,
}

/// A step of stage `stage`.
pub(super) fn program(timing: &Timing, stage: usize) -> Vec<Piece> {
    let own = &timing.stages[stage];
    let stages = timing.stages.len();
    let previous = (stage > 0).then_some(Side::Previous);
    let next = (stage + 1 < stages).then_some(Side::Next);
    let with = |side: Option<Side>, message| side.map(|side| (side, message));
    let mut pieces: Vec<Piece> = actions(timing.schedule, stage, stages, timing.micro_batches)
        .into_iter()
        .map(|action| match action {
            Action::Forward(_) => {
                Piece { wait: previous, seconds: own.forward, send: with(next, Message::Tensor) }
            }
            Action::Backward(_) => {
                Piece { wait: next, seconds: own.backward, send: with(previous, Message::Tensor) }
            }
        })
        .collect();
    pieces.push(Piece { wait: None, seconds: own.norms, send: None });
    let decide = if next.is_none() { own.decide } else { 0.0 };
    pieces.push(Piece { wait: previous, seconds: decide, send: with(next, Message::Control) });
    pieces.push(Piece { wait: next, seconds: 0.0, send: with(previous, Message::Control) });
    pieces.push(Piece { wait: None, seconds: own.update, send: None });
    pieces
}
