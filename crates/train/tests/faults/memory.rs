//! What boundaries remember, when a run is stopped, split anew, or damaged.

use std::fs;
use std::path::Path;

use thinwire_data::hash::sha256_hex;
use thinwire_link::{FrameHeader, FrameKind, Link};
use thinwire_train::checkpoint::step_folder;
use thinwire_train::config::Config;
use thinwire_train::metrics::Event;
use thinwire_train::run::Resume;

use super::resume::{apart, assert_all_well, goes_on_as_if_nothing_had_happened, resumed_at, run_until};
use super::support::{Plan, Story, config, losses, run};
use super::tamper::{Fate, tampered};
use super::{assert_origin, stages, text};

/// An epoch has three steps.
const AQSGD: [&str; 3] = ["pipeline.forward=aqsgd", "train.micro_batch=24", "pipeline.backward=fixed:bits=8"];
const STEPS: [&str; 2] = ["train.steps=8", "checkpoint.every=2"];

#[test]
fn a_resumed_run_remembers_what_the_whole_one_does() {
    goes_on_as_if_nothing_had_happened(2, 2, &AQSGD);
    goes_on_as_if_nothing_had_happened(4, 4, &[&AQSGD[..], &["pipeline.memory.place=file"]].concat());
    let settings = [&AQSGD[..], &["pipeline.forward=aqsgd:keep=bf16,bits=2"]].concat();
    goes_on_as_if_nothing_had_happened(3, 3, &settings);
}

fn warnings(story: &Story) -> Vec<&str> {
    fn warning(event: &Event) -> Option<&str> {
        match event {
            Event::Warning { text, .. } => Some(text),
            _ => None,
        }
    }
    story.iter().flatten().filter_map(warning).collect()
}

/// Boundaries that were there go on; the others begin anew, at both ends.
#[test]
fn another_split_or_another_format_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let settings = [&STEPS[..], &AQSGD].concat();
    let whole = config(dir.path(), &stages(3, &settings));
    run_until(&vec![whole; 3], 7);
    let split = |count, more: &[&str]| config(dir.path(), &stages(count, &[&settings[..], more].concat()));
    let resume = |config: &Config| {
        let (story, outcomes) = Plan { stop_at: Some(8), ..Plan::new(config, Resume::Newest) }.run();
        let error = text(outcomes[0].as_ref().expect_err("the checkpoint stays"));
        assert!(error.contains("stopped by the test"), "{error}");
        story
    };
    assert_eq!(warnings(&resume(&split(3, &[]))), [""; 0]);
    let new = |before| {
        format!(
            "the checkpoint has nothing that the boundary in front of block {before} could remember: its samples are sent \
             as for the first time"
        )
    };
    assert_eq!(warnings(&resume(&split(4, &[]))), [new(1)]);
    assert_eq!(warnings(&resume(&split(3, &["pipeline.forward=aqsgd:keep=bf16"]))), [new(0), new(2)]);
    assert_eq!(warnings(&resume(&split(3, &["pipeline.forward=aqsgd:bits=8"]))), [""; 0]);
}

#[test]
fn a_held_out_text_may_become_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &stages(2, &[&STEPS[..], &AQSGD].concat()));
    run_until(&vec![config.clone(); 2], 7);
    let heldout = &config.data.heldout.as_ref().unwrap().0[0];
    let text = fs::read(heldout).unwrap();
    fs::write(heldout, &text[..300]).unwrap();
    assert_all_well(run(&config, Resume::Newest).1);
}

/// The file of a memory after step 6.
fn newest(config: &Config, name: &str) -> std::path::PathBuf {
    step_folder(&config.run.dir.join("checkpoints"), 6).join(name)
}

#[test]
fn a_memory_that_is_missing_is_a_step_that_this_stage_does_not_have() {
    let dir = tempfile::tempdir().unwrap();
    let configs = apart(dir.path(), &AQSGD);
    run_until(&configs, 7);
    fs::remove_file(newest(&configs[1], "boundary-0001.received.f32")).unwrap();
    let plan = Plan { configs: configs.clone(), ..Plan::new(&configs[0], Resume::Newest) };
    let (story, outcomes) = plan.run();
    assert_all_well(outcomes);
    assert_eq!(resumed_at(&story), [4, 4]);
}

/// Changes the bytes of a memory, and what the manifest says of it if `everywhere`.
fn forge(config: &Config, name: &str, change: impl Fn(&mut Vec<u8>), everywhere: bool) {
    let path = newest(config, name);
    let before = fs::read(&path).unwrap();
    let mut bytes = before.clone();
    change(&mut bytes);
    fs::write(&path, &bytes).unwrap();
    if everywhere {
        let manifest = newest(config, "manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let files = json["memory"].as_array_mut().unwrap();
        let file = files.iter_mut().find(|file| file["name"] == name).unwrap();
        assert_eq!(file["sha256"], sha256_hex(&before));
        file["sha256"] = sha256_hex(&bytes).into();
        file["bytes"] = bytes.len().into();
        fs::write(&manifest, json.to_string()).unwrap();
    }
}

fn stopped_run(dir: &Path) -> Config {
    let config = config(dir, &stages(2, &[&STEPS[..], &AQSGD].concat()));
    run_until(&vec![config.clone(); 2], 7);
    config
}

/// What becomes of the bytes of a file.
type Change = fn(&mut Vec<u8>);

#[test]
fn a_damaged_memory_is_named_and_nothing_is_restored() {
    const SENT: &str = "boundary-0001.sent.f32";
    let cases: [(Change, bool, &str); 6] = [
        (|bytes| bytes[100] ^= 1, false, "SHA-256: expected"),
        (|bytes| bytes.truncate(bytes.len() - 3), true, "cannot read "),
        (|bytes| bytes.extend([1; 10]), true, "cannot read "),
        (
            |bytes| bytes[8..16].fill(0),
            true,
            "bytes of sample 0: expected a multiple of 128 up to 4096, found 0",
        ),
        (
            |bytes| bytes[8..16].fill(0xff),
            true,
            "bytes of sample 0: expected a multiple of 128 up to 4096, found 1844",
        ),
        (|bytes| bytes[16 + 4096] = 0, true, "number of a sample: expected at least 1, found 0"),
    ];
    for (change, everywhere, says) in cases {
        let dir = tempfile::tempdir().unwrap();
        let config = stopped_run(dir.path());
        forge(&config, SENT, change, everywhere);
        let (story, outcomes) = run(&config, Resume::Newest);
        assert_origin(&outcomes, 0, &[SENT, says]);
        assert!(story.iter().all(|events| losses(events).is_empty()));
    }
}

#[test]
fn ends_that_remember_different_things_stop_at_the_first_sample_that_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = stopped_run(dir.path());
    // The lowest bit of every sample's first value.
    let flip = |bytes: &mut Vec<u8>| {
        for sample in 0..187 {
            bytes[sample * (16 + 4096) + 16] ^= 1;
        }
    };
    forge(&config, "boundary-0001.received.f32", flip, true);
    let (story, outcomes) = run(&config, Resume::Newest);
    assert_origin(
        &outcomes,
        1,
        &[
            "cannot decode the activation of step 7, micro-batch 0 from stage 0: sample ",
            ": the sender remembers a state of checksum ",
            ": resume both ends from the same checkpoint, or start anew",
        ],
    );
    assert!(story.iter().all(|events| losses(events).is_empty()));
}

#[test]
fn a_message_that_came_damaged_is_told_by_the_receiver() {
    let dir = tempfile::tempdir().unwrap();
    let judge = |header: &FrameHeader, payload: &[u8]| {
        // In the second epoch: the checksum of the first sample.
        let mut payload = payload.to_vec();
        if (header.kind, header.step, header.micro_batch) != (FrameKind::Forward, 4, 1) {
            return Fate::Pass;
        }
        payload[12] ^= 1;
        Fate::Instead(*header, payload)
    };
    let wrap = |stage, link: Link| if stage == 0 { tampered(link, judge) } else { link };
    let config = config(dir.path(), &stages(2, &[&STEPS[..], &AQSGD].concat()));
    let (_, outcomes) = Plan { wrap: &wrap, ..Plan::new(&config, Resume::Fresh) }.run();
    assert_origin(
        &outcomes,
        1,
        &[
            "cannot decode the activation of step 4, micro-batch 1 from stage 0",
            "the sender remembers a state",
        ],
    );
}
