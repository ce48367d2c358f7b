//! The bench of training: the real engine, measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use thinwire_ops::profile;
use thinwire_train::config::Config;
use thinwire_train::run::{Bench, BenchReport};

const LAYERS: u64 = 2;
const MICRO_BATCHES: u64 = 3;

/// The profile is one for the process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap()
}

fn config(dir: &Path, overrides: &[&str]) -> Config {
    let text = (0..400).fold(String::new(), |text, i| text + &format!("{} sheep; ", i * 7 % 97));
    fs::write(dir.join("train.txt"), text).unwrap();
    let recipe = format!(
        r#"
        run = {{ dir = "run" }}
        model = {{ family = "llama", layers = {LAYERS}, hidden = 32, heads = 4, kv_heads = 2, ffn = 48, context = 32, tie_embeddings = false }}
        data = {{ train = "train.txt", heldout = "missing.txt" }}
        train = {{ steps = 4, sequence = 32, micro_batch = 2, micro_batches = {MICRO_BATCHES} }}
        optimizer = {{ learning_rate = 0.01, warmup_steps = 1 }}
        "#
    );
    let path = dir.join("recipe.toml");
    fs::write(&path, recipe).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Config::load(&path, &overrides).unwrap()
}

fn bench(overrides: &[&str], warmup: u64, steps: u64) -> BenchReport {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), overrides);
    let mut told = 0;
    let report = Bench::load(config, &mut |_| {}).unwrap().run(warmup, steps, &mut |_| told += 1).unwrap();
    assert_eq!(told, warmup + steps);
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["recipe.toml", "train.txt"], "the bench wrote something");
    report
}

#[test]
fn every_call_of_the_measured_steps_is_counted() {
    let _alone = alone();
    let report = bench(&[], 2, 3);
    let found: BTreeMap<_, _> = report
        .operators
        .iter()
        .map(|spent| ((spent.operator.name(), spent.pass.name()), spent.calls))
        .collect();
    let passes = 3 * MICRO_BATCHES;
    let mut expected = BTreeMap::new();
    for (operator, in_a_pass) in [
        ("embedding", 1),
        ("linear", 7 * LAYERS + 1),
        ("attention", LAYERS),
        ("norm", 2 * LAYERS + 1),
        ("activation", LAYERS),
        ("rotary", 2 * LAYERS),
        ("cross-entropy", 1),
    ] {
        expected.insert((operator, "forward"), in_a_pass * passes);
        expected.insert((operator, "backward"), in_a_pass * passes);
    }
    let parameters = 9 * LAYERS + 3;
    expected.insert(("AdamW", "update"), 3 * parameters);
    expected.insert(("gradient norm", "update"), 3 * parameters);
    assert_eq!(found, expected);
    assert_eq!(profile::take(), [], "nothing is recorded afterwards");
}

#[test]
fn the_parts_are_no_more_than_the_whole() {
    let _alone = alone();
    let report = bench(&["train.sequence=16"], 1, 4);
    let seconds: f64 = report.steps.iter().map(|step| step.seconds).sum();
    let operators: f64 = report.operators.iter().map(|spent| spent.time.as_secs_f64()).sum();
    assert!(0.0 < operators && operators <= seconds, "{operators} of {seconds} s");
    let phases = report.phases;
    let sum = phases.forward + phases.backward + phases.update;
    // Each of the 25 spans is cut to whole microseconds.
    assert!(phases.forward > 0.0 && phases.backward > 0.0 && phases.update > 0.0, "{phases:?}");
    assert!(sum <= seconds, "{sum} of {seconds} s");
    let tokens: Vec<u64> = report.warmup.iter().chain(&report.steps).map(|step| step.tokens).collect();
    assert_eq!(tokens, [16 * 2 * MICRO_BATCHES; 5]);
}

#[test]
fn it_learns_as_one_stage_whatever_the_recipe_says() {
    let _alone = alone();
    let losses = |overrides: &[&str]| -> Vec<f64> {
        let report = bench(overrides, 3, 5);
        report.warmup.iter().chain(&report.steps).map(|step| step.loss).collect()
    };
    let one = losses(&[]);
    assert!(one[7] < one[0], "{one:?}");
    let split = [
        "pipeline.stages=2",
        r#"pipeline.layers=["embed 0", "1 head"]"#,
        "pipeline.boundary=[{before=1,forward='tah'}]",
    ];
    assert_eq!(losses(&split), one);
}
