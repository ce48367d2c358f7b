//! Events and records that the tests of this module share: a pipeline of two stages.

use super::all_reduce::AllReduceReport;
use super::event::{Direction, Event, LinkReport, Span, StageTimes};
use super::record::{AllReduceRecord, EvalRecord, LinkRecord, StageRecord, StepRecord};

/// What `stage` of two reports of `step`.
pub(super) fn step(stage: usize, step: u64) -> Event {
    Event::Step {
        stage,
        step,
        loss: 5.0 - 0.1 * step as f64,
        tokens: 2048,
        learning_rate: 3e-4,
        gradient_norm: 1.5,
        skipped: false,
        seconds: 1.0 + stage as f64,
        times: times(),
        links: vec![link(stage, step)],
        all_reduces: all_reduces(stage, step),
    }
}

/// What the two ranks of stage 0 have sent each other after `steps`; stage 1 has one rank.
pub(super) fn all_reduces(stage: usize, steps: u64) -> Vec<AllReduceReport> {
    let report = AllReduceReport {
        stage,
        ranks: 2,
        direction: Direction::Forward,
        calls: 8 * steps,
        elements: 400 * steps,
        bytes: 400 * steps,
        f32_bytes: 3200 * steps,
    };
    if stage == 0 { vec![report] } else { Vec::new() }
}

/// The outgoing direction of `stage` of two, after `steps`.
pub(super) fn link(stage: usize, steps: u64) -> LinkReport {
    LinkReport {
        from: stage,
        to: 1 - stage,
        direction: if stage == 0 { Direction::Forward } else { Direction::Backward },
        wire_bytes: 1100 * steps,
        payload_bytes: 1000 * steps,
        elements: 2000 * steps,
        messages: 4 * steps,
        raw_messages: 0,
        raw_bytes: 0,
        memory_bytes: 0,
        sq_error: 0.5 * steps as f64,
        sq_signal: 250.0 * steps as f64,
    }
}

/// The good end of `stage`.
pub(super) fn finished(stage: usize, steps: u64) -> Event {
    Event::Finished {
        stage,
        steps,
        final_loss: 5.0 - 0.1 * steps as f64,
        heldout_perplexity: (stage == 1).then_some(71.3),
        tokens: 2048 * steps,
        seconds: steps as f64 * (1.0 + stage as f64),
        peak_memory: (stage == 1).then_some(2_000_000),
        links: vec![link(stage, steps)],
        all_reduces: all_reduces(stage, steps),
        sums: Vec::new(),
    }
}

/// A span of the computing thread.
pub(super) fn span(step: u64) -> Span {
    let start_us = 1_700_000_000_000_000 + step;
    Span {
        name: "forward".into(),
        lane: "compute".into(),
        start_us,
        duration_us: 7,
        step,
        micro_batch: Some(0),
    }
}

/// A joined step of two stages.
pub(super) fn step_record(step: u64) -> StepRecord {
    let link = LinkRecord {
        from: 0,
        to: 1,
        direction: Direction::Forward,
        bytes: 10_000,
        total_bytes: 10_000,
        bits_per_element: Some(3.971),
        rel_sq_error: Some(2.1e-3),
        messages: 4,
        raw_messages: 0,
        raw_bytes: 0,
    };
    StepRecord {
        step,
        loss: 4.123_42,
        perplexity: 61.77,
        learning_rate: 3e-4,
        gradient_norm: 1.5,
        skipped: false,
        tokens: 2048,
        seconds: 1.0,
        tokens_per_second: 2048.0,
        links: vec![
            link,
            LinkRecord {
                from: 1,
                to: 0,
                direction: Direction::Backward,
                bytes: 12_000,
                total_bytes: 12_000,
                bits_per_element: Some(6.25),
                rel_sq_error: None,
                messages: 4,
                raw_messages: 1,
                raw_bytes: 60,
            },
        ],
        all_reduces: all_reduces(0, 1).iter().map(|report| AllReduceRecord::between(None, report)).collect(),
        stages: [0, 1].map(|stage| StageRecord { stage, seconds: 1.0, times: times() }).to_vec(),
    }
}

/// An evaluation with a perplexity of 71.3.
pub(super) fn eval_record(step: u64) -> EvalRecord {
    EvalRecord { step, loss: 71.3_f64.ln(), perplexity: 71.3, tokens: 4096, seconds: 0.5 }
}

fn times() -> StageTimes {
    StageTimes { compute: 0.71, optimizer: 0.03, encode: 0.04, send: 0.08, decode: 0.03, wait: 0.14 }
}
