//! The two copies of a tied matrix are compared in every step.

use thinwire_train::pipeline::PipelineError;

use super::engines::{Driven, Poke, drive};
use super::stages;
use super::support::config;

/// Three steps of two stages; in front of step `step`, one value of the head's copy is changed.
fn driven(step: u64) -> Vec<Driven> {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(2, &["model.tie_embeddings=true"]));
    drive(&config, 3, &Poke { stage: 1, step, parameter: "lm_head.weight", range: 7..8, value: 0.125 })
}

#[test]
fn copies_that_differ_stop_the_run() {
    assert!(driven(4).iter().all(|stage| stage.error.is_none()));
    let stages = driven(2);
    let Some(error @ PipelineError::TiedDiffer { step: 1, .. }) = &stages[1].error else {
        panic!("{:?}", stages[1].error)
    };
    let told = stages[0].error.as_ref().unwrap().to_string();
    assert_eq!(told, format!("stage 1 in memory aborted: stage 1: {error}"));
}
