//! Configurations.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::common::{failure, thinwire};
use super::run::{GPT2, Run};
use super::{inspect, refused, text};

/// Bytes of a frame's header.
const FRAME_HEADER: u64 = 88;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The recipe without a held-out text: what an evaluation sends is not part of a step.
fn train_only(run: &Run) -> PathBuf {
    let recipe = fs::read_to_string(run.beside("recipe.toml")).unwrap();
    let path = run.beside("train-only.toml");
    fs::write(
        &path,
        recipe.replace(r#", heldout = "heldout.txt""#, "").replace(r#"dir = "run""#, r#"dir = "bare""#),
    )
    .unwrap();
    path
}

#[test]
fn the_bytes_foretold_are_the_bytes_sent() {
    let raw = [&GPT2[..], &["pipeline.tied=f32"]].concat();
    let lossy = [&GPT2[..], &["pipeline.tied=fixed:bits=8,group=64"]].concat();
    let values = 256 * 32;
    for (model, share) in [(&[][..], 0), (&raw, 4 + 4 * values), (&lossy, 4 + 2 * values / 64 + values)] {
        let run = Run::train(model);
        let config = train_only(&run);
        let sets: Vec<&str> = model.iter().flat_map(|set| ["--set", set]).collect();
        let output = thinwire(["train", "--json"]).arg(&config).args(&sets).output().unwrap();
        let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
        let foretold = inspect(&config, &sets);
        let (steps, micro_batches) = (4, 4);
        let tied = number(&foretold["tied_gradient_bytes"]);
        assert_eq!(tied, share);
        let mut count = 0;
        for link in foretold["links"].as_array().unwrap() {
            let same = |other: &&Value| ["from", "to", "direction"].iter().all(|key| other[key] == link[key]);
            let sent = sent["links"].as_array().unwrap().iter().find(same).unwrap();
            assert_eq!(link["bits_per_element"], sent["bits_per_element"]);
            let payload = number(&link["bytes"]) - micro_batches * FRAME_HEADER;
            let bits = sent["bits_per_element"].as_f64().unwrap() * sent["elements"].as_f64().unwrap();
            assert_eq!((payload * steps * 8) as f64, bits);
            // The rest: hello, ready, and at the end of each step norms, losses and the tied matrix.
            let rest = number(&sent["bytes"]) - steps * number(&link["bytes"]);
            assert!((steps * tied..steps * tied + 16_000).contains(&rest), "{rest}");
            let raw = |size: u64| micro_batches * (FRAME_HEADER + 4 + size * 3 * 32 * 32);
            assert_eq!((number(&link["bf16_bytes"]), number(&link["f32_bytes"])), (raw(2), raw(4)));
            count += 1;
        }
        assert_eq!(count, 4);
        let kept = inspect(&run.beside("bare/thinwire.toml"), &[]);
        assert_eq!((&kept["links"], &kept["stages"]), (&foretold["links"], &foretold["stages"]));
    }
}

#[test]
fn values_are_resolved_and_may_be_changed() {
    let run = Run::train(&[]);
    let recipe = run.beside("recipe.toml");
    let report = inspect(&recipe, &["--set", "pipeline.bandwidth=1mbit"]);
    assert_eq!((&report["kind"], &report["tokenizer"]), (&json!("config"), &json!("byte")));
    assert_eq!(report["config"]["optimizer"]["schedule"], "cosine", "a default");
    assert_eq!((&report["architecture"]["vocab"], &report["measured"]), (&json!(256), &Value::Null));
    let link = &report["links"][0];
    assert_eq!(link["codec"], "fixed:bits=4,group=32");
    assert_eq!(link["seconds"], link["bytes"].as_f64().unwrap() * 8.0 / 1e6);
    assert_eq!(report["parameters"], inspect(&run.dir(), &[])["parameters"]);

    let shown = text(&recipe, &[]);
    for part in ["schedule = \"cosine\"", "embed 0", "0-1     forward", "fixed:bits=4,group=32"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn an_automatic_map_is_measured_on_request() {
    let run = Run::train(&[]);
    let recipe = run.beside("auto.toml");
    let text_of = fs::read_to_string(run.beside("recipe.toml")).unwrap();
    let (general, _) = text_of.split_once("[[pipeline.boundary]]").unwrap();
    let line = general.lines().find(|line| line.contains("layers = [")).unwrap();
    fs::write(&recipe, general.replace(line, "layers = \"auto\"")).unwrap();

    let report = inspect(&recipe, &[]);
    assert_eq!((&report["stages"], &report["measured"]), (&Value::Null, &Value::Null));
    assert_eq!(report["links"].as_array().unwrap().len(), 4, "all boundaries are alike");
    assert!(text(&recipe, &[]).contains("with --measure it is measured now"));

    let measured = inspect(&recipe, &["--measure"]);
    let units = measured["measured"]["units"].as_array().unwrap();
    assert_eq!(
        units.iter().map(|unit| unit["unit"].as_str().unwrap()).collect::<Vec<_>>(),
        ["embed", "block 0", "block 1", "head"]
    );
    assert!(
        units
            .iter()
            .all(|unit| unit["forward"].as_f64() > Some(0.0) && unit["backward"].as_f64() > Some(0.0))
    );
    assert_eq!(measured["links"], report["links"]);

    // The line to paste is valid and gives the stages that were shown.
    let shown = text(&recipe, &["--measure"]);
    let layers = shown.lines().find(|line| line.starts_with("layers = [")).unwrap();
    let pasted = inspect(&recipe, &["--set", &format!("pipeline.{layers}")]);
    let total = |report: &Value| -> u64 {
        report["stages"].as_array().unwrap().iter().map(|stage| number(&stage["parameters"])).sum()
    };
    assert_eq!(pasted["stages"].as_array().unwrap().len(), 3);
    assert_eq!(total(&pasted), total(&measured));
}

#[test]
fn configurations_that_are_refused() {
    let run = Run::train(&[]);
    let recipe = run.beside("recipe.toml");
    for (set, expected) in [
        ("train.stepz=1", "train.stepz: unknown key; did you mean train.steps?"),
        ("pipeline.layers=[\"embed 0\",\"1\",\"1 head\"]", "block 1 is on both stage 1 and stage 2"),
        ("data.tokenizer=absent.json", "cannot read "),
        ("model.vocab=255", "model.vocab = 255: expected at least the tokenizer's 256"),
        ("train.micro_batch=9223372036854775807", "expected from 1 to 16777216"),
    ] {
        let text = refused(&recipe, &["--set", set]);
        assert!(text.contains(expected), "{text}");
    }
    fs::write(run.beside("broken.toml"), "[run\n").unwrap();
    assert!(refused(&run.beside("broken.toml"), &[]).contains("not valid TOML"));
    let text = failure(&mut thinwire(["inspect"]), 2);
    assert!(text.contains("<FILE>..."), "{text}");
}
