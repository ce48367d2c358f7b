//! The split and the schedule do not change a bit of the result.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use thinwire_train::metrics::{Event, LinkReport};
use thinwire_train::run::{Resume, Setup};

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

/// The losses, the evaluations and the last checkpoint's files of a run in this split.
type Told = (Vec<u64>, Vec<u64>, BTreeMap<String, Vec<u8>>);

fn told(split: &str, settings: &[&str]) -> Told {
    let dir = tempfile::tempdir().unwrap();
    let stages = format!("pipeline.stages={}", split.matches("\",").count() + 1);
    let layers = format!("pipeline.layers={split}");
    let config = config(dir.path(), &[&[&*stages, &*layers], settings].concat());
    let (story, outcomes) = run(&config, Resume::Fresh);
    for outcome in outcomes {
        outcome.unwrap();
    }
    (losses(&story[0]), evaluations(&story[0]), last_checkpoint(&config))
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
fn gradient_checkpointing_changes_no_bit() {
    let result = |split: &str, family: &str, dtype: &str, checkpointing: bool| {
        let set = [
            format!("model.family={family}"),
            format!("train.dtype={dtype}"),
            format!("train.gradient_checkpointing={checkpointing}"),
            "pipeline.schedule=gpipe".into(),
            "model.tie_embeddings=true".into(),
            "model.kv_heads=4".into(),
        ];
        told(split, &set.each_ref().map(String::as_str))
    };
    for (family, dtype) in [("llama", "f32"), ("gpt2", "f32"), ("gpt2", "bf16")] {
        let kept = result(SPLITS[0], family, dtype, false);
        for split in SPLITS {
            assert!(result(split, family, dtype, true) == kept, "{family}, {dtype}, {split}");
        }
    }
}

/// Each end's share of a tied matrix's gradient is rounded once, however many links it passes.
#[test]
fn a_tied_gradient_is_rounded_alike_in_any_split() {
    let run = |split: &str, schedule: &str, tied: &str| {
        let set = [format!("pipeline.schedule={schedule}"), format!("pipeline.tied={tied}")];
        told(split, &["model.tie_embeddings=true", "train.steps=30", &set[0], &set[1]])
    };
    let exact = run(SPLITS[0], "1f1b", "f32");
    for (codec, tolerance) in [("fixed:bits=8,group=64", 0.01), ("bf16", 0.005), ("tah", 0.04)] {
        assert!(run(SPLITS[0], "1f1b", codec) == exact, "one stage sends nothing");
        let rounded = run(SPLITS[1], "1f1b", codec);
        assert!(run(SPLITS[2], "gpipe", codec) == rounded, "{codec}");
        assert!(run(SPLITS[3], "1f1b", codec) == rounded, "{codec}");
        let copies = ["model.embed_tokens.weight", "lm_head.weight"].map(|name| {
            let files = rounded.2.values().map(|file| SafeTensors::deserialize(file).unwrap());
            files.filter_map(|file| Some(file.tensor(name).ok()?.data().to_vec())).collect::<Vec<_>>()
        });
        assert!(!copies[0].is_empty() && copies[0] == copies[1], "{codec}");

        assert_ne!(rounded.0, exact.0, "{codec}");
        // A step of few tokens differs by more than the run does.
        let mean = |losses: &[u64]| losses[20..].iter().map(|&loss| f64::from_bits(loss)).sum::<f64>() / 10.0;
        let (rounded, exact) = (mean(&rounded.0), mean(&exact.0));
        assert!((rounded / exact - 1.0).abs() < tolerance, "{codec}: {rounded} for {exact}");
    }
}

#[test]
fn bf16_in_any_split() {
    for family in ["llama", "gpt2"] {
        let family = format!("model.family={family}");
        every_split_is_bit_equal(&[
            "train.dtype=bf16",
            &family,
            "model.kv_heads=4",
            "model.tie_embeddings=true",
        ]);
    }
}

/// Parameters stay `f32`, so small updates are not lost; what crosses a boundary is `bf16` to the bit.
#[test]
fn bf16_learns_as_f32_does() {
    let split = ["train.steps=30", "pipeline.stages=2", r#"pipeline.layers=["embed 0", "1 head"]"#];
    let curve = |settings: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), &[&split, settings].concat());
        let (story, outcomes) = run(&config, Resume::Fresh);
        for outcome in outcomes {
            outcome.unwrap();
        }
        losses(&story[0]).into_iter().map(f64::from_bits).collect::<Vec<_>>()
    };
    let exact = curve(&[]);
    let rounded = curve(&["train.dtype=bf16"]);
    assert_ne!(exact, rounded);
    for (step, (exact, rounded)) in exact.iter().zip(&rounded).enumerate() {
        assert!((rounded / exact - 1.0).abs() < 0.03, "step {step}: {rounded} for {exact}");
    }
    let codecs = ["train.dtype=bf16", "pipeline.forward=bf16", "pipeline.backward=bf16"];
    assert_eq!(curve(&codecs), rounded);
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

#[test]
fn epochs_are_counted_in_steps() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        config(dir.path(), &["train.steps=0", "train.epochs=2", r#"pipeline.layers=["embed 0-1 head"]"#]);
    let (story, outcomes) = run(&config, Resume::Fresh);
    // 6000 bytes are 188 sequences of 32 predictions, a step takes 12.
    assert_eq!(losses(&story[0]).len(), 2 * 16);
    assert_eq!(outcomes.into_iter().next().unwrap().unwrap().steps, 32);

    let set = ["train.steps=0", "train.epochs=1000000000000000000", r#"pipeline.layers=["embed 0-1 head"]"#];
    let error = Setup::load(crate::support::config(dir.path(), &set)).unwrap_err().to_string();
    let expected = "train.epochs = 1000000000000000000: expected at most 576460752303423487: an epoch of this data has 16 steps";
    assert!(error.contains(expected), "{error}");
}

/// The losses, the evaluations and the last report of either direction of a run of two stages.
fn run_two_stages(settings: &[&str]) -> (Vec<u64>, Vec<u64>, [LinkReport; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let split = ["pipeline.stages=2", r#"pipeline.layers=["embed 0", "1 head"]"#];
    let config = config(dir.path(), &[&split, settings].concat());
    let (story, outcomes) = run(&config, Resume::Fresh);
    for outcome in outcomes {
        outcome.unwrap();
    }
    let links = [0, 1].map(|stage| {
        let Some(Event::Finished { links, .. }) = story[stage].last() else { panic!("not finished") };
        // Whether the last control frame is counted yet is a matter of time.
        LinkReport { wire_bytes: 0, ..links[0] }
    });
    (losses(&story[0]), evaluations(&story[0]), links)
}

#[test]
fn tensors_below_the_threshold_go_raw_and_are_counted() {
    // 3 x 32 x 32 values in training, 8 x 32 x 32 in evaluation.
    let (f32_losses, f32_evaluations, links) = run_two_stages(&[]);
    assert!(links.iter().all(|link| link.messages >= 16 && link.raw_messages == 0), "{links:?}");

    let all = ["pipeline.forward=tah:raw_below=100000", "pipeline.backward=fixed:bits=4,raw_below=100000"];
    let (losses, evaluations, links) = run_two_stages(&all);
    assert_eq!((&losses, &evaluations), (&f32_losses, &f32_evaluations));
    for link in links {
        assert_eq!((link.raw_messages, link.raw_bytes), (link.messages, link.payload_bytes), "{link:?}");
        assert_eq!(link.rel_sq_error(), Some(0.0));
    }

    let training = ["pipeline.forward=tah:raw_below=3073", "pipeline.backward=fixed:bits=4,raw_below=3073"];
    let (losses, evaluations, [forward, backward]) = run_two_stages(&training);
    assert_eq!(losses, f32_losses);
    assert_ne!(evaluations, f32_evaluations, "larger tensors are compressed");
    // 4 steps of 4 micro-batches; a raw message has a header of 4 bytes. The last window of the 1000 held-out bytes, evaluated
    // twice, predicts 7 of them.
    let (trained, last_windows) = (16 * (4 + 4 * 3072), 2 * (4 + 4 * 7 * 32));
    assert_eq!((forward.raw_messages, forward.raw_bytes), (16 + 2, trained + last_windows));
    assert_eq!((backward.messages, backward.raw_messages, backward.raw_bytes), (16, 16, trained));
    assert!(forward.messages > forward.raw_messages);

    let none = ["pipeline.forward=tah:raw_below=3072", "pipeline.backward=fixed:bits=4,raw_below=3072"];
    let (losses, _, [_, backward]) = run_two_stages(&none);
    assert_ne!(losses, f32_losses);
    assert_eq!((backward.raw_messages, backward.raw_bytes), (0, 0));
}

#[test]
fn threads_do_not_change_the_result() {
    let codecs = ["pipeline.forward=tah", "pipeline.backward=fixed", "train.micro_batch=160"];
    let one = run_two_stages(&codecs);
    assert_eq!(run_two_stages(&[&codecs[..], &["pipeline.codec_threads=2"]].concat()), one);
}
