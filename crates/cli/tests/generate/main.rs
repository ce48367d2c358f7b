//! `thinwire generate` and `thinwire eval --choices`, run as a user runs them.

mod chat;
mod choices;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{failure, json, thinwire};
use serde_json::{Value, json};

/// Fixtures of models with random weights.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../train/tests/fixtures")
}

/// A Hugging Face folder with a tokenizer of 64 characters, from `?` on.
fn folder() -> PathBuf {
    fixtures().join("families/smollm2")
}

fn text(ids: &Value) -> String {
    let letter = |id: &Value| char::from(b'?' + u8::try_from(id.as_u64().unwrap()).unwrap());
    ids.as_array().unwrap().iter().map(letter).collect()
}

/// A prompt, and the 24 tokens that `transformers` has behind it.
fn expected() -> (String, String) {
    let file = fs::read(fixtures().join("continuations.json")).unwrap();
    let models: Value = serde_json::from_slice(&file).unwrap();
    let first = &models["smollm2"][0];
    // The tokenizer has no decoder, and so a space between tokens.
    let spaced = text(&first["greedy"]).chars().flat_map(|letter| [' ', letter]).collect();
    (text(&first["prompt"]), spaced)
}

fn generate(arguments: &[&str]) -> Command {
    let mut command = thinwire(["generate", "--model"]);
    command.arg(folder()).args(arguments);
    command
}

#[test]
fn the_text_goes_out_and_the_figures_beside_it() {
    let (prompt, greedy) = expected();
    let arguments = ["--prompt", &prompt, "--max-tokens", "24"];
    let output = generate(&arguments).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{greedy}\n"));
    let figures = String::from_utf8(output.stderr).unwrap();
    assert!(figures.contains("generated  24 tokens") && figures.contains("end: length"), "{figures}");

    let report = json(&mut generate(&arguments));
    assert_eq!((&report["text"], &report["end"]), (&json!(greedy), &json!("length")));
    assert_eq!((&report["tokens"], &report["prompt_tokens"]), (&json!(24), &json!(1)));

    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &prompt).unwrap();
    let file = file.path().to_str().unwrap();
    assert_eq!(json(&mut generate(&["--prompt-file", file, "--max-tokens", "24"]))["text"], json!(greedy));
}

#[test]
fn boundaries_are_crossed() {
    let report = |codec: &str| {
        let arguments = ["--prompt", "HELLO", "--max-tokens", "4", "--boundaries", "1,3", "--codec", codec];
        json(&mut generate(&arguments))
    };
    let lossless = report("f32");
    assert_eq!((&lossless["boundaries"], &lossless["rel_sq_error"]), (&json!([1, 3]), &json!([0.0, 0.0])));
    let coarse = report("fixed:bits=2,group=16");
    assert!(coarse["bytes"][0].as_u64() < lossless["bytes"][0].as_u64(), "{coarse} {lossless}");
    assert!(coarse["rel_sq_error"][1].as_f64().unwrap() > 0.0);
}

#[test]
fn the_seed_decides_what_is_drawn() {
    let drawn = |seed: &str| {
        let arguments = ["--prompt", "HELLO", "--max-tokens", "40", "--temperature", "1.5", "--seed", seed];
        json(generate(&arguments).args(["--top-p", "0.95", "--top-k", "50"]))["text"].clone()
    };
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
}

#[test]
fn what_cannot_be_generated_is_refused() {
    for (arguments, reason) in [
        (
            &["--prompt", "A", "--max-tokens", "128"][..],
            "1 tokens of prompt and 128 more: the model takes at most 128",
        ),
        (&["--prompt", ""], "the prompt has no tokens"),
        (&["--prompt", "A", "--temperature=-1"], "temperature is -1: expected 0 or a positive number"),
        (&["--prompt", "A", "--top-p", "0"], "top-p is 0: expected above 0, at most 1"),
        (&["--prompt-file", "/nowhere/prompt.txt"], "cannot read /nowhere/prompt.txt"),
        (&["--prompt", "A", "--boundaries", "1"], "choose one with --codec"),
    ] {
        let error = failure(&mut generate(arguments), 1);
        assert!(error.contains(reason), "{error}");
    }
    failure(&mut generate(&[]), 2);
    failure(&mut generate(&["--prompt", "A", "--prompt-file", "b"]), 2);
}

#[test]
fn ranks_that_share_the_model_say_the_same() {
    let tokenizer = folder().join("tokenizer.json");
    let report = |arguments: &[&str]| {
        let mut command = thinwire(["generate", "--prompt", "THE", "--max-tokens", "12", "--model"]);
        command.arg(fixtures().join("families/qwen3")).arg("--tokenizer").arg(&tokenizer).args(arguments);
        json(&mut command)
    };
    let alone = report(&[]);
    let shared = report(&["--tensor-parallel", "2"]);
    assert_eq!((&shared["text"], &shared["tokens"]), (&alone["text"], &json!(12)));
    let drawn =
        ["--tensor-parallel", "2", "--all-reduce", "echo:group=16", "--temperature", "1", "--seed", "3"];
    let drawn = report(&drawn);
    assert_eq!(drawn["tokens"], 12);
    assert!(drawn["all_reduce"]["rel_sq_error"].as_f64().unwrap() > 0.0, "{drawn}");
}
