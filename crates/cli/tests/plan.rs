//! `thinwire plan`, as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Two stages; the text is not there, as no plan reads it.
fn recipe(dir: &Path) {
    let recipe = r#"
        run = { dir = "run" }
        model = { family = "llama", layers = 2, hidden = 64, heads = 2, kv_heads = 1, ffn = 128, context = 16, tie_embeddings = true }
        data = { train = "missing.txt" }
        train = { steps = 2, sequence = 16, micro_batch = 2, micro_batches = 4 }
        pipeline = { stages = 2, bandwidth = "10mbit" }
    "#;
    fs::write(dir.join("recipe.toml"), recipe).unwrap();
}

fn plan(dir: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinwire"));
    command.args(["plan", "recipe.toml"]).args(options).current_dir(dir).output().unwrap()
}

#[test]
fn this_machine_is_measured_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    recipe(dir.path());
    let output =
        plan(dir.path(), &["--json", "--rates", "1mbit,100mbit", "--threads", "1", "--cores", "1.5"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the plan wrote something");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["threads"], 1);
    assert_eq!(found["stages"].as_array().unwrap().len(), 2);
    assert_eq!(found["stages"][0]["machine"], "this machine");
    assert_eq!(found["stages"][0]["measured"], true);
    assert_eq!(found["links"].as_array().unwrap().len(), 2);
    let rates: Vec<u64> =
        found["rates"].as_array().unwrap().iter().map(|row| row["rate"].as_u64().unwrap()).collect();
    assert_eq!(rates, [1_000_000, 100_000_000]);
    assert!(found["proposals"].is_array());
    let number = |value: &Value| value.as_f64().unwrap();
    let tokens = 4.0 * 2.0 * 16.0;
    let product = number(&found["step_seconds"]) * number(&found["tokens_per_second"]);
    assert!((product / tokens - 1.0).abs() < 1e-9);
    // The matrix that is tied has 257 x 64 values in f32, which cross the link at 1 Mbit/s twice.
    assert!(number(&found["rates"][0]["f32"]) < tokens / (2.0 * 8.0 * 4.0 * 257.0 * 64.0 / 1e6));

    let text = String::from_utf8(plan(dir.path(), &["--rates", "1mbit", "--no-proposals"]).stdout).unwrap();
    assert!(!text.contains("Each of these") && !text.contains("No change"), "{text}");
    for part in ["tokens/s", "bottleneck: ", "0-1   forward", "1 Mbit/s", "this machine"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn ranks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    recipe(dir.path());
    let output = plan(dir.path(), &["--set", "model.kv_heads=2", "--set", "tensor_parallel.ranks=2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("tensor_parallel.ranks = 2: a plan is for stages of one rank"), "{said}");
}

#[test]
fn machines_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    recipe(dir.path());
    let machine = "[[machine]]\nname = 'far'\nflops = '1 TFLOP/s'\nmemory = '1MB'\n";
    fs::write(dir.path().join("machines.toml"), machine.repeat(2)).unwrap();
    let output = plan(dir.path(), &["--machines", "machines.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("stage 0 does not fit"), "{text}");

    fs::write(dir.path().join("machines.toml"), machine).unwrap();
    let output = plan(dir.path(), &["--machines", "machines.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("error: expected 2 [[machine]] entries for 2 stages, found 1"), "{said}");
    let output = plan(dir.path(), &["--machines", "missing.toml"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot read missing.toml"));
    for wrong in [["--rates", "fast"], ["--cores", "0"], ["--cores", "nan"], ["--threads", "0"]] {
        assert_eq!(plan(dir.path(), &wrong).status.code(), Some(2), "{wrong:?}");
    }
}
