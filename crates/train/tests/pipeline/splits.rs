//! The split and the schedule do not change a bit of the result.

use thinwire_train::metrics::Event;
use thinwire_train::run::Resume;

use crate::support::{config, evaluations, last_checkpoint, losses, run};

/// Stages and their layer maps.
const SPLITS: [&str; 4] = [
    r#"["embed 0-1 head"]"#,
    r#"["embed 0", "1 head"]"#,
    r#"["embed", "0-1", "head"]"#,
    r#"["embed", "0", "1", "head"]"#,
];

fn every_split_is_bit_equal(settings: &[&str]) {
    let mut reference = None;
    for schedule in ["gpipe", "1f1b"] {
        for (index, split) in SPLITS.iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let mut overrides = settings.to_vec();
            let set = [
                format!("pipeline.stages={}", index + 1),
                format!("pipeline.layers={split}"),
                format!("pipeline.schedule={schedule}"),
            ];
            overrides.extend(set.iter().map(String::as_str));
            let config = config(dir.path(), &overrides);
            let (story, outcomes) = run(&config, Resume::Fresh);
            for outcome in outcomes {
                outcome.unwrap();
            }
            let result = (losses(&story[0]), evaluations(&story[0]), last_checkpoint(&config));
            assert_eq!(result.0.len(), 4);
            for events in &story {
                assert_eq!(losses(events), result.0, "every stage tells the same losses");
            }
            let reference = reference.get_or_insert_with(|| result.clone());
            assert_eq!(reference.0, result.0, "losses of {split}, {schedule}");
            assert_eq!(reference.1, result.1, "evaluations of {split}, {schedule}");
            assert!(reference.2 == result.2, "parameters and optimizer state of {split}, {schedule}");
        }
    }
}

#[test]
fn llama() {
    every_split_is_bit_equal(&[]);
}

#[test]
fn llama_with_a_tied_head() {
    every_split_is_bit_equal(&["model.tie_embeddings=true"]);
}

#[test]
fn qwen2() {
    every_split_is_bit_equal(&["model.family=qwen2", "model.rope_scaling={type='linear',factor=2.0}"]);
}

#[test]
fn qwen3_with_wide_heads() {
    every_split_is_bit_equal(&["model.family=qwen3", "model.head_dim=12"]);
}

#[test]
fn gpt2() {
    every_split_is_bit_equal(&["model.family=gpt2", "model.kv_heads=4"]);
}

#[test]
fn gpt2_with_a_tied_head_and_short_batches() {
    // 6000 bytes are 188 sequences: the fifth micro-batch of 38 sequences is short, and so is the last step.
    every_split_is_bit_equal(&[
        "model.family=gpt2",
        "model.kv_heads=4",
        "model.tie_embeddings=true",
        "train.micro_batch=38",
        "train.micro_batches=3",
    ]);
}

#[test]
fn the_loss_falls_and_figures_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(
        dir.path(),
        &[
            "train.steps=30",
            "pipeline.stages=2",
            r#"pipeline.layers=["embed 0", "1 head"]"#,
            "pipeline.forward=tah",
            "pipeline.backward=fixed:bits=6,group=64",
        ],
    );
    let (story, outcomes) = run(&config, Resume::Fresh);
    let outcome = outcomes.into_iter().next().unwrap().unwrap();
    let first = f64::from_bits(losses(&story[0])[0]);
    assert!(outcome.loss < 0.7 * first, "{} after {first}", outcome.loss);
    for (stage, events) in story.iter().enumerate() {
        let Some(Event::Finished { links, .. }) = events.last() else { panic!("{:?}", events.last()) };
        let link = &links[0];
        assert_eq!((link.from, link.to), (stage, 1 - stage));
        let bits = link.bits_per_element().unwrap();
        let error = link.rel_sq_error().unwrap();
        // 32 channels are half a tile of 64: padded parameters cost more than on whole tiles.
        assert!((4.0..9.0).contains(&bits), "{bits} bits an element");
        assert!(error > 0.0 && error < 0.05, "relative squared error {error}");
        assert!(link.wire_bytes > link.payload_bytes);
    }
}
