//! A run that was stopped goes on as if it had not been.

use std::fs;
use std::path::Path;

use thinwire_train::checkpoint::{available, step_folder};
use thinwire_train::config::Config;
use thinwire_train::metrics::Event;
use thinwire_train::run::Resume;

use super::support::{Outcomes, Plan, Story, config, evaluations, last_checkpoint, losses, run};
use super::{assert_origin, stages, text};

const STEPS: [&str; 3] = ["train.steps=8", "checkpoint.every=2", "checkpoint.keep=2"];
const TAH: [&str; 2] = ["pipeline.forward=tah:g=32", "pipeline.backward=fixed:bits=6,group=32"];

/// Runs until the first stage has done `step`, then no further.
pub(crate) fn run_until(configs: &[Config], step: u64) {
    let (_, outcomes) =
        Plan { configs: configs.to_vec(), stop_at: Some(step), ..Plan::new(&configs[0], Resume::Fresh) }
            .run();
    assert!(text(outcomes[0].as_ref().unwrap_err()).contains("stopped by the test"));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 0);
}

/// Panics with the first error, if there is one.
pub(crate) fn assert_all_well(outcomes: Outcomes) {
    for outcome in outcomes {
        outcome.unwrap();
    }
}

pub(crate) fn resumed_at(story: &Story) -> Vec<u64> {
    let at = |events: &Vec<Event>| {
        events.iter().find_map(|event| match event {
            Event::Resumed { step, .. } => Some(*step),
            _ => None,
        })
    };
    story.iter().map(|events| at(events).expect("every stage resumes")).collect()
}

/// Stops a run of `before` stages in step 7, resumes it with `after` stages, and compares with one that went through.
pub(crate) fn goes_on_as_if_nothing_had_happened(before: usize, after: usize, settings: &[&str]) {
    let whole = tempfile::tempdir().unwrap();
    let settings = [&STEPS, settings].concat();
    let reference = config(whole.path(), &stages(before, &settings));
    let (expected, outcomes) = run(&reference, Resume::Fresh);
    assert_all_well(outcomes);

    let dir = tempfile::tempdir().unwrap();
    let first = config(dir.path(), &stages(before, &settings));
    run_until(&vec![first; before], 7);
    let second = config(dir.path(), &stages(after, &settings));
    let (story, outcomes) = run(&second, Resume::Newest);
    assert_all_well(outcomes);

    assert_eq!(resumed_at(&story), vec![6; after]);
    for events in &story {
        assert_eq!(losses(events), losses(&expected[0])[6..], "losses of steps 7 and 8");
        assert_eq!(evaluations(events), evaluations(&expected[0])[3..], "the evaluation after step 8");
    }
    assert!(last_checkpoint(&second) == last_checkpoint(&reference), "parameters and optimizer state");
}

#[test]
fn with_compressed_links() {
    goes_on_as_if_nothing_had_happened(2, 2, &TAH);
    goes_on_as_if_nothing_had_happened(3, 3, &[&TAH[..], &["model.tie_embeddings=true"]].concat());
}

#[test]
fn a_finished_run_tells_its_result_again_and_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(2, &TAH));
    let (_, first) = run(&config, Resume::Fresh);
    let first = first.into_iter().map(Result::unwrap);
    let before = last_checkpoint(&config);
    let (story, again) = run(&config, Resume::Newest);
    assert!(again.into_iter().map(Result::unwrap).eq(first));
    for events in &story {
        assert_eq!((losses(events).len(), evaluations(events).len()), (0, 0));
    }
    assert!(last_checkpoint(&config) == before);
}

#[test]
fn another_batch_would_be_another_place_in_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let (_, outcomes) = run(&config(dir.path(), &stages(2, &STEPS)), Resume::Fresh);
    assert_all_well(outcomes);
    for (setting, expected) in [
        ("train.sequence=16", "train.sequence"),
        ("train.micro_batch=2", "train.micro_batch"),
        ("train.micro_batches=3", "train.micro_batches"),
    ] {
        let other = config(dir.path(), &stages(2, &[&STEPS[1..], &["train.steps=12", setting]].concat()));
        let (_, outcomes) = run(&other, Resume::Newest);
        let error = text(outcomes[0].as_ref().unwrap_err());
        assert!(error.contains(expected), "{setting}: {error}");
    }
}

#[test]
fn with_another_number_of_stages() {
    goes_on_as_if_nothing_had_happened(1, 3, &[]);
    goes_on_as_if_nothing_had_happened(4, 2, &["model.tie_embeddings=true"]);
}

/// Two stages, each with a folder of its own.
pub(crate) fn apart(dir: &Path, settings: &[&str]) -> Vec<Config> {
    let settings = [&STEPS[..], settings].concat();
    ["run.dir=a", "run.dir=b"]
        .map(|dir_of| config(dir, &stages(2, &[&settings[..], &[dir_of]].concat())))
        .to_vec()
}

fn checkpoints(config: &Config, stage: usize) -> Vec<u64> {
    let map = config.pipeline.manual_map(config.model.layers).unwrap().unwrap();
    available(&config.run.dir.join("checkpoints"), &map.stages()[stage]).unwrap()
}

#[test]
fn stages_agree_on_the_newest_checkpoint_that_all_have() {
    let dir = tempfile::tempdir().unwrap();
    let configs = apart(dir.path(), &TAH);
    run_until(&configs, 7);
    assert_eq!((checkpoints(&configs[0], 0), checkpoints(&configs[1], 1)), (vec![4, 6], vec![4, 6]));

    fs::remove_dir_all(step_folder(&configs[1].run.dir.join("checkpoints"), 6)).unwrap();
    // What only one stage has must not push out what both have.
    let configs: Vec<Config> = configs
        .into_iter()
        .map(|mut config| {
            config.checkpoint.keep = 1;
            config
        })
        .collect();
    let (story, outcomes) =
        Plan { configs: configs.clone(), stop_at: Some(5), ..Plan::new(&configs[0], Resume::Newest) }.run();
    assert!(outcomes.iter().all(Result::is_err));
    assert_eq!(resumed_at(&story), [4, 4]);
    assert_eq!((checkpoints(&configs[0], 0), checkpoints(&configs[1], 1)), (vec![4], vec![4]));

    let (story, outcomes) = Plan { configs: configs.clone(), ..Plan::new(&configs[0], Resume::Newest) }.run();
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(resumed_at(&story), [4, 4]);
    assert_eq!((checkpoints(&configs[0], 0), checkpoints(&configs[1], 1)), (vec![8], vec![8]));
}

#[test]
fn without_a_common_checkpoint_every_stage_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let configs = apart(dir.path(), &TAH);
    run_until(&configs, 7);
    fs::remove_dir_all(configs[0].run.dir.join("checkpoints")).unwrap();
    let (_, outcomes) = Plan { configs: configs.clone(), ..Plan::new(&configs[0], Resume::Newest) }.run();
    for outcome in outcomes {
        let error = text(&outcome.unwrap_err());
        assert!(
            error.contains("there is no checkpoint in") && error.contains("that all stages have"),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_checkpoint_is_named_and_one_without_a_manifest_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(2, &STEPS));
    run_until(&vec![config.clone(); 2], 7);
    let newest = step_folder(&config.run.dir.join("checkpoints"), 6);

    let weights = newest.join("layer-0001.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let (_, outcomes) = run(&config, Resume::Newest);
    assert_origin(&outcomes, 1, &["step-00000006/layer-0001.safetensors: SHA-256: expected"]);
    assert!(weights.exists(), "a failed resume removes nothing");

    fs::write(newest.join("manifest.json"), "{").unwrap();
    let (story, outcomes) = run(&config, Resume::Newest);
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(resumed_at(&story), [4, 4]);
}

#[test]
fn a_checkpoint_that_cannot_be_written_ends_every_stage_and_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(3, &STEPS));
    let folder = config.run.dir.join("checkpoints");
    let obstacle = step_folder(&folder, 4).join("layer-0000.safetensors");
    fs::create_dir_all(obstacle.join("in the way")).unwrap();
    let (story, outcomes) = run(&config, Resume::Fresh);
    assert_origin(
        &outcomes,
        1,
        &["cannot write ", "step-00000004/layer-0000.safetensors", "part of the checkpoint takes "],
    );
    assert!(story.iter().all(|events| losses(events).len() == 4));
    assert_eq!(checkpoints(&config, 1), [2]);

    fs::remove_dir_all(obstacle).unwrap();
    let (story, outcomes) = run(&config, Resume::Newest);
    assert_all_well(outcomes);
    assert_eq!(resumed_at(&story), [2; 3]);
}
