//! Runs, checkpoints and their files.

use std::fs;

use serde_json::{Value, json};

use super::run::{GPT2, Run, edit_manifest};
use super::{inspect, refused, text};

#[test]
fn a_run_a_step_and_its_manifest_are_one_checkpoint() {
    let run = Run::train(&[]);
    let report = inspect(&run.dir(), &["--verify"]);
    assert_eq!(report, inspect(&run.step(4), &["--verify"]));
    assert_eq!(report, inspect(&run.step(4).join("manifest.json"), &["--verify"]));
    assert_eq!(
        (&report["kind"], &report["step"], &report["verified"]),
        (&json!("checkpoint"), &json!(4), &json!(8))
    );
    assert_eq!(report["architecture"]["hidden"], 32);
    assert_eq!(report["step"], run.report["steps"]);
    assert_eq!(
        (&report["tokenizer"], &report["seed"], &report["missing"]),
        (&json!("byte"), &json!(5), &json!([]))
    );

    let units: Vec<&str> = list(&report["units"]).iter().map(|unit| unit["unit"].as_str().unwrap()).collect();
    assert_eq!(units, ["embed", "block 0", "block 1", "head"]);
    let maps: Vec<&str> =
        list(&report["stages"]).iter().map(|stage| stage["units"].as_str().unwrap()).collect();
    assert_eq!(maps, ["embed 0", "1", "head"]);
    for stages in [&report["stages"], &report["units"]] {
        let sum: u64 = list(stages).iter().map(|stage| stage["parameters"].as_u64().unwrap()).sum();
        assert_eq!(report["parameters"], sum, "untied: every matrix counts");
    }
    assert_eq!(inspect(&run.step(2), &[])["verified"], Value::Null);
}

#[test]
fn what_boundaries_remember_is_listed_and_verified() {
    let run = Run::train(&["pipeline.forward=aqsgd:keep=bf16"]);
    let report = inspect(&run.dir(), &["--verify"]);
    assert_eq!((&report["verified"], &report["missing"]), (&json!(10), &json!([])));
    let names: Vec<&str> =
        list(&report["memory"]).iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["boundary-0002.sent.bf16", "boundary-0002.received.bf16"]);
    let bytes = |file: &Value| file["bytes"].as_u64().unwrap();
    let units = list(&report["units"]).iter().map(|unit| bytes(&unit["weights"]) + bytes(&unit["optimizer"]));
    let memory = list(&report["memory"]).iter().map(bytes);
    assert_eq!(report["bytes"], units.chain(memory).sum::<u64>());
    assert!(text(&run.dir(), &[]).contains("\n  boundary-0002.received.bf16"));

    let path = run.step(4).join("boundary-0002.received.bf16");
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(refused(&run.dir(), &["--verify"]).contains("boundary-0002.received.bf16: SHA-256: expected "));
    fs::remove_file(&path).unwrap();
    assert_eq!(inspect(&run.dir(), &[])["missing"], json!(["boundary-0002.received.bf16"]));
    edit_manifest(&run.step(4), |manifest| {
        manifest["memory"][0]["name"] = json!("../boundary-0002.sent.bf16");
    });
    assert!(refused(&run.step(4), &[]).contains("name of memory 0: expected a boundary's"));
}

#[test]
fn a_tied_matrix_counts_once_in_the_model_and_on_both_stages() {
    let run = Run::train(&GPT2);
    let report = inspect(&run.dir(), &[]);
    let sum: u64 = list(&report["stages"]).iter().map(|stage| stage["parameters"].as_u64().unwrap()).sum();
    assert_eq!(report["parameters"], sum - 256 * 32);
}

#[test]
fn a_file_of_a_checkpoint_is_known() {
    let run = Run::train(&[]);
    for (name, unit, content) in [
        ("layer-0001.safetensors", "block 1", "weights"),
        ("head.optimizer.safetensors", "head", "optimizer"),
    ] {
        let report = inspect(&run.step(4).join(name), &["--verify"]);
        let checkpoint = &report["checkpoint"];
        assert_eq!((&checkpoint["unit"], &checkpoint["content"]), (&json!(unit), &json!(content)));
        assert_eq!((&checkpoint["step"], &checkpoint["verified"]), (&json!(4), &json!(true)));
        let units = inspect(&run.step(4), &[]);
        let whole = list(&units["units"]).iter().find(|entry| entry["unit"] == unit).unwrap().clone();
        let copies = if content == "weights" { 1 } else { 2 }; // two moments
        assert_eq!(report["elements"], whole["parameters"].as_u64().unwrap() * copies);
    }
    let shown = text(&run.step(4).join("embed.safetensors"), &[]);
    for part in ["weights of embed", "step        4", "model.embed_tokens.weight [256, 32] F32"] {
        assert!(shown.contains(part), "{shown}");
    }
    // What a killed run leaves has no manifest; a file elsewhere has none either.
    fs::remove_file(run.step(2).join("manifest.json")).unwrap();
    assert_eq!(inspect(&run.step(2).join("head.safetensors"), &["--verify"])["checkpoint"], Value::Null);
}

#[test]
fn every_damage_is_found() {
    let run = Run::train(&[]);
    let path = run.step(4).join("layer-0000.optimizer.safetensors");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 0x80;
    fs::write(&path, flipped).unwrap();
    assert_eq!(inspect(&run.dir(), &[])["missing"], json!([]), "sizes alone do not tell");
    for place in [&run.dir(), &run.step(4), &path] {
        let text = refused(place, &["--verify"]);
        assert!(text.contains("layer-0000.optimizer.safetensors: SHA-256: expected "), "{text}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let report = inspect(&run.step(4), &[]);
    assert_eq!(report["missing"], json!(["layer-0000.optimizer.safetensors"]));
    assert!(refused(&run.step(4), &["--verify"]).contains("size in bytes: expected "));
    fs::remove_file(&path).unwrap();
    // A stage with a disk of its own has the files of its units only.
    assert_eq!(inspect(&run.step(4), &["--verify"])["verified"], 7);
    assert!(text(&run.step(4), &[]).contains("not here: layer-0000.optimizer.safetensors"));
}

#[test]
fn manifests_that_lie() {
    let run = Run::train(&[]);
    let path = run.step(4).join("manifest.json");
    let honest = fs::read(&path).unwrap();
    for (field, value, expected) in [
        ("heads", json!(0), "describes no model\n  because: model.heads = 0: expected a divisor"),
        ("layers", json!(1u64 << 60), "number of files"),
        ("family", json!("mamba"), "manifest.json is damaged"),
        ("hidden", json!(1u64 << 62), "model.hidden = 4611686018427387904: expected from 1 to 16777216"),
    ] {
        edit_manifest(&run.step(4), |manifest| manifest["run"]["architecture"][field] = value);
        for place in [run.step(4), run.step(4).join("head.safetensors")] {
            let text = refused(&place, &[]);
            assert!(text.contains(expected), "{text}");
        }
        fs::write(&path, &honest).unwrap();
    }
    edit_manifest(&run.step(4), |manifest| manifest["run"]["tokenizer"] = json!("\u{1b}[2J"));
    let shown = text(&run.step(4), &[]);
    assert!(shown.contains("\\u{1b}[2J") && !shown.contains('\u{1b}'), "{shown}");
    for length in (0..honest.len()).step_by(53) {
        fs::write(&path, &honest[..length]).unwrap();
        assert!(refused(&run.step(4), &[]).contains("manifest.json is damaged"));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}
