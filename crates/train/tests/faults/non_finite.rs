//! Values that are NaN or infinite, under either policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use thinwire_link::{FrameHeader, FrameKind, Link};
use thinwire_train::checkpoint::step_folder;
use thinwire_train::config::Config;
use thinwire_train::data::MicroBatch;
use thinwire_train::metrics::Event;
use thinwire_train::run::{Resume, Setup};

use super::engines::{Poke, drive};
use super::support::{Outcomes, Plan, Story, config, losses, run};
use super::tamper::{Fate, all, tampered};
use super::{assert_origin, stages};

const STOP: &str = "pipeline.non_finite=stop";
const SKIP: &str = "pipeline.non_finite=skip-step";

/// A byte that the text of these runs does not have otherwise.
const RARE: u8 = b'Z';

/// Spoils what stage 2 sends to stage 1, or stage 1 to stage 0, in step 3, micro-batch 2: the values are finite, as every
/// value on a link, but what is computed from them is not.
fn run_spoiled(config: &Config, from: usize) -> (Story, Outcomes) {
    let spoil = |header: &FrameHeader, _: &[u8]| {
        let here = (header.kind, header.step, header.micro_batch) == (FrameKind::Backward, 3, 2);
        if here { all(f32::MAX, header, header.shape) } else { Fate::Pass }
    };
    let wrap = |stage, link: Link| {
        let backward = (link.peer.stage() as usize) < stage;
        if stage == from && backward { tampered(link, spoil) } else { link }
    };
    Plan { wrap: &wrap, ..Plan::new(config, Resume::Fresh) }.run()
}

/// Who spoils, who must find it, and what that stage says.
const SPOILED: [(usize, usize, &str); 2] = [
    (2, 1, " of the gradient of step 3, micro-batch 2 to stage 0 is not finite"),
    (1, 0, "stage 0: the gradient of model.embed_tokens.weight is not finite in step 3"),
];

#[test]
fn stop_names_the_origin_of_a_gradient_on_every_stage() {
    for (from, origin, expected) in SPOILED {
        let dir = tempfile::tempdir().unwrap();
        let (story, outcomes) = run_spoiled(&config(dir.path(), &stages(3, &[])), from);
        let error = assert_origin(&outcomes, origin, &[]);
        // The stage's own parameters are checked while the gradient is on its way to be packed.
        let own = format!("stage {origin}: the gradient of model.layers.");
        assert!(error.ends_with(expected) || error.starts_with(&own), "{error}");
        for events in story {
            assert_eq!(losses(&events).len(), 2, "the steps before it count");
        }
    }
}

#[test]
fn skip_step_leaves_out_that_step_on_all_stages_and_nothing_else() {
    for (from, _, expected) in SPOILED {
        let dir = tempfile::tempdir().unwrap();
        let settings = [SKIP, "train.steps=5", "checkpoint.every=1", "checkpoint.keep=0"];
        let config = config(dir.path(), &stages(3, &settings));
        let (story, outcomes) = run_spoiled(&config, from);
        for (events, outcome) in story.iter().zip(outcomes) {
            assert!(outcome.unwrap().loss.is_finite());
            assert_eq!(skipped(events), [false, false, true, false, false]);
            let warnings = warnings(events);
            assert!(warnings.len() == 1 && warnings[0].starts_with("step 3 skipped: stage "), "{warnings:?}");
            assert!(warnings[0].ends_with(expected), "{warnings:?}");
        }
        let checkpoint = |step| files(&step_folder(&config.run.dir.join("checkpoints"), step));
        assert!(checkpoint(3) == checkpoint(2), "the skipped step changes neither parameters nor optimizer");
        assert!(checkpoint(4) != checkpoint(3), "the next one does");
    }
}

/// An embedding that is NaN for a byte of one micro-batch, and a head that is NaN for one step, in runs of three stages;
/// with the stage that finds it and what that stage says.
fn pokes(config: &Config) -> [(Poke, String); 2] {
    let mut setup = Setup::load(config.clone()).unwrap();
    let holds = |batch: &MicroBatch| batch.inputs.contains(&u32::from(RARE));
    let (step, micro_batch) = (1..)
        .find_map(|step| {
            setup.batches.step(step - 1).unwrap().iter().position(holds).map(|place| (step, place))
        })
        .unwrap();
    let row = usize::from(RARE) * config.model.hidden;
    let range = row..row + config.model.hidden;
    [
        (
            Poke { stage: 0, step, parameter: "model.embed_tokens.weight", range, value: f32::NAN },
            format!("of the activation of step {step}, micro-batch {micro_batch} to stage 1 is not finite"),
        ),
        (
            Poke { stage: 2, step, parameter: "lm_head.weight", range: 0..1, value: f32::NAN },
            format!("stage 2: the activation of step {step}, micro-batch 0 gives a loss of NaN"),
        ),
    ]
}

/// A small run whose text has one [`RARE`] byte.
fn rare(dir: &Path, policy: &str) -> Config {
    let config = config(dir, &stages(3, &[policy]));
    let mut text = fs::read(&config.data.train.0[0]).unwrap();
    text[3000] = RARE;
    fs::write(&config.data.train.0[0], text).unwrap();
    config
}

#[test]
fn stop_names_the_origin_of_an_activation_or_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let config = rare(dir.path(), STOP);
    for (poke, expected) in pokes(&config) {
        let stages = drive(&config, poke.step + 1, &poke);
        let error = stages[poke.stage].error.as_ref().unwrap().to_string();
        assert!(
            error.starts_with(&format!("stage {}: ", poke.stage)) && error.contains(&expected),
            "{error}"
        );
        for (stage, driven) in stages.iter().enumerate() {
            assert_eq!(driven.reports.len() as u64, poke.step - 1);
            let told = driven.error.as_ref().unwrap().to_string();
            assert!(
                stage == poke.stage || told.ends_with(&format!("aborted: stage {}: {error}", poke.stage)),
                "{told}"
            );
        }
    }
}

#[test]
fn skip_step_forgets_an_activation_or_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let config = rare(dir.path(), SKIP);
    for (poke, expected) in pokes(&config) {
        let steps = poke.step + 1;
        for driven in drive(&config, steps, &poke) {
            assert!(driven.error.is_none(), "{:?}", driven.error);
            for (step, report) in (1..).zip(&driven.reports) {
                let skipped = report.skipped.as_deref().unwrap_or_default();
                let as_expected =
                    if step == poke.step { skipped.contains(&expected) } else { skipped.is_empty() };
                assert!(as_expected, "step {step}: {skipped:?}");
            }
            let [.., before, during, after] = &driven.parameters[..] else {
                // The rare byte is in the first step: there is nothing before it to compare with.
                panic!("{} steps", driven.parameters.len())
            };
            assert!(before == during && during != after);
        }
    }
}

/// The tensor that is not finite is remembered at neither end: the epochs after it find the same at both.
#[test]
fn skip_step_leaves_what_is_remembered_equal() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = rare(dir.path(), SKIP);
    config.pipeline.forward = "aqsgd".parse().unwrap();
    config.train.micro_batch = 24;
    let [(poke, expected), _] = pokes(&config);
    for driven in drive(&config, poke.step + 6, &poke) {
        assert!(driven.error.is_none(), "{:?}", driven.error);
        let skipped: Vec<_> = driven.reports.iter().filter_map(|report| report.skipped.as_ref()).collect();
        assert!(skipped.len() == 1 && skipped[0].contains(&expected), "{skipped:?}");
    }
}

#[test]
fn ten_skips_in_a_row_stop() {
    let dir = tempfile::tempdir().unwrap();
    let settings =
        [SKIP, "train.steps=30", "eval.every=0", "optimizer.learning_rate=1e30", "optimizer.clip_norm=0"];
    let (story, outcomes) = run(&config(dir.path(), &stages(2, &settings)), Resume::Fresh);
    for (events, outcome) in story.iter().zip(outcomes) {
        let error = super::text(&outcome.unwrap_err());
        assert!(error.contains("10 steps in a row were skipped, the last because stage "), "{error}");
        let skipped = skipped(events);
        assert!(skipped.len() < 20 && skipped.ends_with(&[true; 9]), "{skipped:?}");
    }
}

#[test]
fn an_evaluation_that_is_not_finite_ends_the_run() {
    for policy in [STOP, SKIP] {
        for count in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let settings = [
                policy,
                "train.steps=1",
                "optimizer.learning_rate=1e38",
                "optimizer.weight_decay=1e38",
                "optimizer.warmup_steps=0",
            ];
            let (_, outcomes) = run(&config(dir.path(), &stages(count, &settings)), Resume::Fresh);
            let origin = (0..count).find(|&stage| {
                let error = super::text(outcomes[stage].as_ref().unwrap_err());
                error.starts_with(&format!("stage {stage}:"))
            });
            assert_origin(
                &outcomes,
                origin.unwrap(),
                &["the activation of the evaluation after step 1, micro-batch 0"],
            );
        }
    }
}

fn skipped(events: &[Event]) -> Vec<bool> {
    let skipped = |event: &Event| match event {
        Event::Step { skipped, .. } => Some(*skipped),
        _ => None,
    };
    events.iter().filter_map(skipped).collect()
}

fn warnings(events: &[Event]) -> Vec<String> {
    let warning = |event: &Event| match event {
        Event::Warning { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect()
}
