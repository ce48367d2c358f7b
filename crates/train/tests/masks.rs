//! The loss counts answers alone, whatever the stages and micro-batches.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use support::{config, evaluations, last_checkpoint, losses, run};
use thinwire_train::config::{Config, StageUnits, Unit};
use thinwire_train::data::MicroBatch;
use thinwire_train::metrics::Event;
use thinwire_train::model::{Activation, Part, token_losses};
use thinwire_train::run::{Resume, Setup};

const TEMPLATE: &str = "{% for m in messages %}{{ m.role|first }}:{{ m.content }};{% endfor %}\
                        {% if add_generation_prompt %}a:{% endif %}";

/// Conversations of different lengths; some are longer than a sequence.
fn chat(dir: &Path, overrides: &[&str]) -> Config {
    let mut lines = String::new();
    for n in 0..40 {
        let (question, answer) = ("what ".repeat(n % 4 + 1), "sheep ".repeat(n % 7 + 1));
        let turn = format!(
            r#"{{"role": "user", "content": "{question}{n}"}}, {{"role": "assistant", "content": "{answer}"}}"#
        );
        writeln!(lines, r#"{{"messages": [{turn}, {turn}]}}"#).unwrap();
    }
    fs::write(dir.join("chat.jsonl"), lines).unwrap();
    fs::write(dir.join("chat.jinja"), TEMPLATE).unwrap();
    let mut all = vec!["data.train=chat.jsonl", "data.heldout=chat.jsonl", "data.template=chat.jinja"];
    all.extend(overrides);
    config(dir, &all)
}

const PACKINGS: [&str; 2] = ["data.packing=pad", "data.packing=full"];

#[test]
fn every_split_gives_the_same_bits() {
    for packing in PACKINGS {
        let results = [r#"["embed 0-1 head"]"#, r#"["embed 0", "1 head"]"#, r#"["embed", "0-1", "head"]"#]
            .map(|map| {
                let dir = tempfile::tempdir().unwrap();
                let stages = format!("pipeline.stages={}", map.matches(',').count() + 1);
                let config = chat(dir.path(), &[packing, &stages, &format!("pipeline.layers={map}")]);
                let (story, outcomes) = run(&config, Resume::Fresh);
                for outcome in outcomes {
                    assert!(outcome.unwrap().evaluation.is_some());
                }
                (losses(&story[0]), evaluations(&story[0]), last_checkpoint(&config))
            });
        assert!(results.iter().all(|result| *result == results[0]), "{packing}");
    }
}

#[test]
fn micro_batches_do_not_change_the_loss() {
    let losses = [(1, 12), (2, 6), (3, 4), (12, 1)].map(|(samples, count)| {
        let dir = tempfile::tempdir().unwrap();
        let (samples, count) =
            (format!("train.micro_batch={samples}"), format!("train.micro_batches={count}"));
        let (story, _) = run(&chat(dir.path(), &["data.packing=pad", &samples, &count]), Resume::Fresh);
        losses(&story[0]).into_iter().map(f64::from_bits).collect::<Vec<f64>>()
    });
    for other in &losses {
        for (a, b) in other.iter().zip(&losses[0]) {
            // f32 sums of the same terms in another order.
            assert!((a - b).abs() < 1e-4 * b, "{a} and {b}");
        }
    }
}

/// Sum of the losses of the targets that count, one by one.
fn loss_of(part: &Part, batch: &MicroBatch) -> f64 {
    let device = Device::flex();
    let ids = |ids: &[u32], shape: [usize; 2]| {
        let ids: Vec<i64> = ids.iter().map(|&id| i64::from(id)).collect();
        Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &device)
    };
    let shape = [batch.samples, batch.tokens];
    let leaves = part.params().constants();
    let output = part.forward(&leaves, Activation::Ids(ids(&batch.inputs, shape)));
    let Activation::Logits(logits) = output else { panic!("the part ends with the head") };
    let losses = token_losses(logits, ids(&batch.targets, shape).flatten::<1>(0, 1));
    let losses: Vec<f32> = losses.into_data().try_into_vec().unwrap();
    let mask = batch.mask.as_ref().expect("questions do not count");
    losses.iter().zip(mask).filter(|(_, counts)| **counts).map(|(loss, _)| f64::from(*loss)).sum()
}

#[test]
fn the_loss_is_the_mean_over_the_answers() {
    for packing in PACKINGS {
        let dir = tempfile::tempdir().unwrap();
        let two_stages = ["pipeline.stages=2", r#"pipeline.layers=["embed 0", "1 head"]"#, packing];
        let config = chat(dir.path(), &two_stages);
        let mut setup = Setup::load(config.clone()).unwrap();
        let units: Vec<Unit> = StageUnits::whole(2).iter().collect();
        let part = Part::new(&setup.architecture, &units, config.run.seed, &Device::flex());
        let batches = setup.batches.step(0).unwrap();
        let counted: usize = batches.iter().map(MicroBatch::trained).sum();
        let expected = batches.iter().map(|batch| loss_of(&part, batch)).sum::<f64>() / counted as f64;

        let (story, outcomes) = run(&config, Resume::Fresh);
        for outcome in outcomes {
            assert!(outcome.is_ok());
        }
        let first = f64::from_bits(losses(&story[0])[0]);
        // f32 sums against f64.
        assert!((first - expected).abs() < 1e-5 * expected, "{packing}: {first}, {expected}");
        let told = story[0].iter().find_map(|event| match event {
            Event::Step { tokens, .. } => Some(*tokens),
            _ => None,
        });
        assert_eq!(told, Some(counted as u64));
    }
}

#[test]
fn a_resumed_run_is_a_straight_one_to_the_bit() {
    for packing in PACKINGS {
        let dir = tempfile::tempdir().unwrap();
        let straight = chat(dir.path(), &[packing, "train.steps=8", "run.dir=straight", "data.cache=tokens"]);
        let (_, outcomes) = run(&straight, Resume::Fresh);
        for outcome in outcomes {
            assert!(outcome.is_ok());
        }
        let stopped = chat(dir.path(), &[packing, "train.steps=8", "run.dir=stopped", "checkpoint.every=5"]);
        let plan = support::Plan { stop_at: Some(6), ..support::Plan::new(&stopped, Resume::Fresh) };
        assert!(plan.run().1.into_iter().all(|outcome| outcome.is_err()));
        let (_, outcomes) = run(&stopped, Resume::Newest);
        for outcome in outcomes {
            assert_eq!(outcome.unwrap().steps, 8);
        }
        assert!(last_checkpoint(&straight) == last_checkpoint(&stopped), "{packing}");
    }
}

#[test]
fn damage_is_told_by_one_stage() {
    let dir = tempfile::tempdir().unwrap();
    let config = chat(
        dir.path(),
        &[
            "data.damaged=0.1",
            "pipeline.stages=2",
            r#"pipeline.layers=["embed 0", "1 head"]"#,
            "train.steps=1",
        ],
    );
    let chat = fs::read_to_string(dir.path().join("chat.jsonl")).unwrap();
    fs::write(dir.path().join("chat.jsonl"), format!("nonsense\n{chat}")).unwrap();
    let (story, _) = run(&config, Resume::Fresh);
    let warnings = story.iter().flatten().filter_map(|event| match event {
        Event::Warning { stage, text } => Some((*stage, text.clone())),
        _ => None,
    });
    let warnings: Vec<_> = warnings.collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for ((stage, text), name) in warnings.iter().zip(["training data: ", "held-out data: "]) {
        assert!(
            *stage == 0 && text.starts_with(name) && text.contains("chat.jsonl:1: not valid JSON"),
            "{text}"
        );
    }
}
