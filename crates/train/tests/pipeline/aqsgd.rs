//! Runs whose boundaries remember samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use thinwire_train::config::Config;
use thinwire_train::metrics::{Event, LinkReport};
use thinwire_train::run::{Resume, Setup};

use crate::support::{config, evaluations, last_checkpoint, losses, run};

/// By number of stages.
const SPLITS: [&str; 4] =
    ["", r#"["embed 0", "1 head"]"#, r#"["embed", "0-1", "head"]"#, r#"["embed", "0", "1", "head"]"#];

/// 5999 predictions in sequences of 32 are 187 and a tail of 15: 16 micro-batches of up to 12 and one of the tail, so an
/// epoch of five steps.
const TWO_EPOCHS: [&str; 5] = [
    "train.steps=10",
    "train.micro_batch=12",
    "eval.every=5",
    "pipeline.backward=fixed:bits=8",
    "metrics.error_every=1",
];

fn recipe(dir: &Path, stages: usize, settings: &[&str]) -> Config {
    let split = [format!("pipeline.stages={stages}"), format!("pipeline.layers={}", SPLITS[stages - 1])];
    config(dir, &[&[&*split[0], &*split[1]], settings].concat())
}

/// The losses, the evaluations, the files of the last checkpoint, and the last report of each stage's first direction.
type Told = (Vec<u64>, Vec<u64>, BTreeMap<String, Vec<u8>>, Vec<LinkReport>);

fn told(config: &Config) -> Told {
    let (story, outcomes) = run(config, Resume::Fresh);
    for outcome in outcomes {
        outcome.unwrap();
    }
    let links = story.iter().map(|events| {
        let Some(Event::Finished { links, .. }) = events.last() else { panic!("not finished") };
        // That of the activations, where the stage has one. Control frames are counted as time will have it.
        LinkReport { wire_bytes: 0, ..*links.last().unwrap() }
    });
    let links = links.collect();
    (losses(&story[0]), evaluations(&story[0]), last_checkpoint(config), links)
}

fn told_of(stages: usize, settings: &[&str]) -> Told {
    let dir = tempfile::tempdir().unwrap();
    told(&recipe(dir.path(), stages, &[&TWO_EPOCHS[..], settings].concat()))
}

#[test]
fn place_schedule_and_threads_do_not_change_the_result() {
    for (stages, codec) in [(2, "pipeline.forward=aqsgd"), (4, "pipeline.forward=aqsgd:keep=bf16,first=bf16")]
    {
        let reference = told_of(stages, &[codec]);
        assert_eq!((reference.0.len(), reference.1.len()), (10, 2));
        for other in [
            "pipeline.memory.place=file",
            "pipeline.memory={place='file',dir='elsewhere',limit='10MB'}",
            "pipeline.schedule=gpipe",
            "pipeline.codec_threads=2",
        ] {
            assert!(told_of(stages, &[codec, other]) == reference, "{stages} stages, {other}");
        }
        for boundary in 0..stages - 1 {
            let before = if stages == 2 { 1 } else { boundary };
            let keep = if stages == 2 { "f32" } else { "bf16" };
            let [sent, received] =
                ["sent", "received"].map(|end| &reference.2[&format!("boundary-{before:04}.{end}.{keep}")]);
            assert!(!sent.is_empty() && sent == received, "both ends of boundary {before}");
        }
    }
}

/// The first epoch and the first evaluation are what they are without compression.
#[test]
fn samples_go_raw_once_and_are_counted() {
    let (f32_losses, f32_evaluations, _, _) = told_of(2, &[]);
    let (losses, evaluations, _, links) = told_of(2, &["pipeline.forward=aqsgd"]);
    assert_eq!((&losses[..5], &evaluations[..1]), (&f32_losses[..5], &f32_evaluations[..1]));
    assert_ne!(losses[5..], f32_losses[5..]);
    assert_ne!(evaluations[1], f32_evaluations[1]);

    // The last window of the 999 held-out predictions has 7 of them.
    let values = |tokens: usize| 32 * tokens;
    let samples = [(187, values(32)), (1, values(15)), (31, values(32)), (1, values(7))];
    let bytes = |of: &dyn Fn(usize) -> usize| -> u64 {
        samples.iter().map(|&(count, values)| (count * (12 + 4 + of(values))) as u64).sum()
    };
    let (raw, difference) = (bytes(&|n| 4 * n), bytes(&|n| 2 * n.div_ceil(64) + n.div_ceil(2)));
    let messages = 2 * (16 + 1 + 4 + 1);
    let [forward, backward] = links[..] else { panic!("two stages") };
    assert_eq!((forward.messages, forward.payload_bytes), (messages, raw + difference + 4 * messages));
    let kept: usize = samples.iter().map(|(count, values)| 4 * count * values).sum();
    assert_eq!((forward.memory_bytes, backward.memory_bytes), (kept as u64, 0));
    // Half of it is raw; the other half must be better than the values themselves in as many bits.
    let fixed = told_of(2, &["pipeline.forward=fixed:bits=4,group=64"]).3[0];
    assert!(forward.sq_error > 0.0 && forward.rel_sq_error() < fixed.rel_sq_error().map(|error| error / 2.0));
}

/// Padded to the longest of its micro-batch, a document has another length in every epoch.
#[test]
fn documents_that_are_padded_to_different_lengths() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for n in 0..60 {
        writeln!(lines, r#"{{"text": "{}{n}"}}"#, "goat ".repeat(n % 6 + 1)).unwrap();
    }
    fs::write(dir.path().join("documents.jsonl"), lines).unwrap();
    let settings = [
        "data.train=documents.jsonl",
        "data.heldout=documents.jsonl",
        "data.packing=pad",
        "train.micro_batch=4",
        "train.steps=16",
        "eval.every=4",
        "pipeline.forward=aqsgd",
    ];
    let (losses, evaluations, files, _) = told(&recipe(dir.path(), 2, &settings));
    assert_eq!((losses.len(), evaluations.len()), (16, 4));
    assert!(losses.iter().chain(&evaluations).all(|loss| f64::from_bits(*loss).is_finite()));
    assert!(files["boundary-0001.sent.f32"] == files["boundary-0001.received.f32"]);
}

#[test]
fn what_would_be_too_much_to_remember_is_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    // 188 training and 32 held-out sequences of 32 tokens and 32 channels.
    let needed = 220 * 32 * 32 * 4;
    let setup = |limit: u64, codec: &str| {
        let limit = format!("pipeline.memory.limit={limit}");
        Setup::load(recipe(dir.path(), 2, &[codec, &limit]))
    };
    assert!(setup(needed, "pipeline.forward=aqsgd").is_ok());
    assert!(setup(needed / 2, "pipeline.forward=aqsgd:keep=bf16").is_ok());
    assert!(setup(1, "pipeline.forward=tah").is_ok());
    let error = setup(needed - 1, "pipeline.forward=aqsgd").unwrap_err().to_string();
    let expected = format!(
        "the boundary in front of block 1: aqsgd:bits=4,group=64,keep=f32,first=f32 would remember 220 samples of 32 tokens, \
         880KiB at either end, and pipeline.memory.limit is {}B: raise it, keep bf16, or choose another codec",
        needed - 1
    );
    assert_eq!(error, expected);
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("occupied"), "").unwrap();
    let place = "pipeline.memory={place='file',dir='occupied/folder'}";
    let (_, outcomes) = run(&recipe(dir.path(), 2, &["pipeline.forward=aqsgd", place]), Resume::Fresh);
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("occupied/folder that a codec remembers samples in"), "{error}");
    }
}
