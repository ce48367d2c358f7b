//! Models, texts and arguments that cannot be used.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::common::{failure, thinwire};
use super::eval;
use super::run::{Run, edit_manifest};

#[test]
fn arguments_that_fit_no_model() {
    let run = Run::train(&[]);
    for (arguments, code, expected) in [
        (&["--boundaries", "3"][..], 1, "boundary 3 does not exist: expected 0 (behind the embedding) to 2"),
        (&["--boundaries", "1,2,1"], 1, "boundary 1 is named twice"),
        (&["--boundaries", "none", "--codec", "tah"], 1, "--boundaries none leaves nothing for --codec"),
        (&["--sequence", "33"], 1, "sequences of 33 tokens: the model takes at most 32"),
        (&["--stride", "33"], 1, "a stride of 33 tokens: expected 1 to 32, the length of a sequence"),
        (&["--stride", "0"], 2, "--stride <N>"),
        (&["--boundaries", "1,x"], 2, "`x`: expected block numbers with commas between them, or `none`"),
        (&["--boundaries", ""], 2, "expected block numbers"),
        (&["--tokens", "1"], 2, "--tokens <N>"),
        (&["--micro-batch", "0"], 2, "--micro-batch <N>"),
        (&["--codec", "tahh"], 2, "did you mean `tah`"),
    ] {
        let text = failure(&mut eval(&run, &run.dir(), arguments), code);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn texts_that_cannot_be_used() {
    let run = Run::train(&[]);
    fs::write(run.beside("short.txt"), "a").unwrap();
    for (name, expected) in [
        ("absent.txt", "cannot read "),
        ("short.txt", "short.txt holds 1 tokens; at least 2 are needed"),
        ("run", "cannot read "),
    ] {
        let mut command = thinwire(["eval", "--model"]);
        let text = failure(command.arg(run.dir()).arg("--text").arg(run.beside(name)), 1);
        assert!(text.contains(expected) && text.contains(name), "{text}");
    }
}

#[test]
fn paths_that_lead_to_no_model() {
    let run = Run::train(&[]);
    let empty = run.beside("empty");
    fs::create_dir(&empty).unwrap();
    for (path, expected) in [
        (run.beside("absent"), "cannot open "),
        (
            run.beside("recipe.toml"),
            "is no model: expected a run's folder (with thinwire.toml or checkpoints/ in it), a checkpoint",
        ),
        (empty.clone(), "is no model: expected a run's folder"),
        (run.step(3), "cannot open "),
    ] {
        let text = failure(&mut eval(&run, &path, &[]), 1);
        assert!(text.contains(expected), "{text}");
    }
    fs::create_dir(empty.join("checkpoints")).unwrap();
    let text = failure(&mut eval(&run, &empty, &[]), 1);
    assert!(text.contains("empty/checkpoints has no complete checkpoint"), "{text}");
}

/// Puts bytes into a file of a checkpoint, and their hash into the manifest.
fn forge(step: &Path, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    let path = step.join(name);
    let mut bytes = fs::read(&path).unwrap();
    edit(&mut bytes);
    fs::write(&path, &bytes).unwrap();
    let digest: Vec<String> = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    edit_manifest(step, |manifest| {
        let files = manifest["files"].as_array_mut().unwrap();
        let entry = files.iter_mut().find(|file| file["name"] == name).unwrap();
        (entry["sha256"], entry["bytes"]) = (json!(digest.concat()), json!(bytes.len()));
    });
}

#[test]
fn values_that_are_not_finite_are_told_by_their_boundary() {
    let run = Run::train(&[]);
    forge(&run.step(4), "layer-0001.safetensors", |bytes| {
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let text = failure(&mut eval(&run, &run.dir(), &[]), 1);
    assert!(text.contains("boundary 2: cannot encode the activation of micro-batch 0"), "{text}");
    assert!(
        text.contains("because: value ") && text.contains(" is NaN: only finite values can be sent"),
        "{text}"
    );
    let text = failure(&mut eval(&run, &run.dir(), &["--boundaries", "none"]), 1);
    assert!(text.contains("the loss of micro-batch 0 is NaN nats a token"), "{text}");
}

#[test]
fn damaged_weights_are_refused() {
    let run = Run::train(&[]);
    let path = run.step(4).join("head.safetensors");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let text = failure(&mut eval(&run, &run.dir(), &[]), 1);
    assert!(text.contains("head.safetensors: SHA-256: expected "), "{text}");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let text = failure(&mut eval(&run, &run.step(4), &[]), 1);
    assert!(text.contains("head.safetensors: size in bytes: expected at least "), "{text}");
}

/// No memory is taken for a model that exists in the manifest alone.
#[test]
fn manifests_that_lie() {
    let run = Run::train(&[]);
    let path = run.step(4).join("manifest.json");
    let honest = fs::read(&path).unwrap();
    for (field, value, expected) in [
        ("hidden", json!(1u64 << 24), "size in bytes: expected at least "),
        ("ffn", json!(1u64 << 24), "size in bytes: expected at least "),
        ("vocab", json!(1u64 << 24), "size in bytes: expected at least "),
        ("hidden", json!(1u64 << 40), "model.hidden = 1099511627776: expected from 1 to 16777216"),
        ("hidden", json!(0), "model.hidden = 0: expected from 1 to"),
        ("heads", json!(0), "model.heads = 0: expected a divisor"),
        ("heads", json!(3), "model.heads = 3: expected a divisor"),
        ("kv_heads", json!(0), "model.kv_heads = 0: expected a divisor"),
        ("vocab", json!(10), "the tokenizer has 256 ids, the model only 10"),
        ("layers", json!(u64::MAX), "number of files"),
        ("layers", json!(-1), "manifest.json is damaged"),
        ("rope_theta", json!(-1.0), "model.rope_theta = -1: expected a positive number"),
    ] {
        edit_manifest(&run.step(4), |manifest| manifest["run"]["architecture"][field] = value);
        let text = failure(&mut eval(&run, &run.step(4), &[]), 1);
        assert!(text.contains(expected), "{field}: {text}");
        fs::write(&path, &honest).unwrap();
    }
    let stages = |list: Value| edit_manifest(&run.step(4), |manifest| manifest["run"]["stages"] = list);
    stages(json!(["embed 0-18446744073709551614", "head"]));
    let text = failure(&mut eval(&run, &run.step(4), &[]), 1);
    assert!(text.contains("the checkpoint's layer map\n  because: stage 0 owns block "), "{text}");
}
