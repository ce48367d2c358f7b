//! A small run in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::common::thinwire;

/// Layer maps of the recipe's model, by number of stages.
const SPLITS: [&str; 4] = [
    r#"["embed 0-1 head"]"#,
    r#"["embed 0", "1 head"]"#,
    r#"["embed", "0-1", "head"]"#,
    r#"["embed", "0", "1", "head"]"#,
];

const RECIPE: &str = r#"
    run = { dir = "run", seed = 5 }
    model = { family = "llama", layers = 2, hidden = 32, heads = 4, kv_heads = 2, ffn = 48, context = 32, tie_embeddings = true }
    data = { train = "train.txt", heldout = "heldout.txt" }
    train = { steps = 6, sequence = 32, micro_batch = 2, micro_batches = 3 }
    optimizer = { learning_rate = 0.01, warmup_steps = 2 }
    eval = { every = 2, tokens = 200, micro_batch = 2 }
    checkpoint = { every = 2, keep = 0 }
    pipeline = { forward = "tah:g=32", backward = "fixed:bits=6,group=32", deadline_seconds = 20.0, connect_seconds = 20.0 }
"#;

/// A recipe with its texts, in a temporary folder.
pub(crate) struct Recipe {
    folder: tempfile::TempDir,
}

/// One line of a run's metrics: its kind, its step, and the loss as it is written.
pub(crate) type Line = (String, u64, String);

impl Recipe {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = (0..400).fold(String::new(), |text, i| {
            text + &format!("{} sheep and {} goats; ", i * 7 % 97, i * i % 89)
        });
        fs::write(folder.path().join("train.txt"), &text[..6000]).unwrap();
        fs::write(folder.path().join("heldout.txt"), &text[6000..7000]).unwrap();
        fs::write(folder.path().join("recipe.toml"), RECIPE).unwrap();
        Self { folder }
    }

    /// Something in the recipe's folder, which no other test shares.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `thinwire train --json` of this many stages with these `--set` arguments.
    pub(crate) fn train(&self, stages: usize, set: &[&str]) -> Command {
        let mut command = thinwire(["train", "--json"]);
        command.arg(self.path("recipe.toml"));
        command.args(split(stages)).args(settings(set));
        command
    }

    /// As [`Recipe::train`], to its good end; the report.
    pub(crate) fn report(&self, stages: usize, set: &[&str]) -> Value {
        succeed(&mut self.train(stages, set))
    }

    /// What the metrics in `run/` say.
    pub(crate) fn metrics(&self) -> Vec<Line> {
        self.metrics_of("run")
    }

    /// What the metrics of the run in this folder say; a last line that is being written is left out.
    pub(crate) fn metrics_of(&self, run: &str) -> Vec<Line> {
        let text = fs::read_to_string(self.path(run).join("metrics.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(line).collect()
    }

    /// The steps that have a folder in `run/checkpoints/`, and whether each is a checkpoint.
    pub(crate) fn checkpoints(&self) -> Vec<(u64, bool)> {
        let mut found: Vec<(u64, bool)> = fs::read_dir(self.path("run/checkpoints"))
            .into_iter()
            .flatten()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name["step-".len()..].parse().unwrap(), path.join("manifest.json").exists())
            })
            .collect();
        found.sort_unstable();
        found
    }
}

fn line(text: &str) -> Line {
    let json: Value = serde_json::from_str(text).unwrap();
    (json["kind"].as_str().unwrap().to_owned(), json["step"].as_u64().unwrap(), json["loss"].to_string())
}

/// Arguments that split the model into this many stages.
pub(crate) fn split(stages: usize) -> Vec<String> {
    settings(&[&format!("pipeline.stages={stages}"), &format!("pipeline.layers={}", SPLITS[stages - 1])])
}

/// The lines of `metrics` that are training steps: their numbers.
pub(crate) fn steps(metrics: &[Line]) -> Vec<u64> {
    metrics.iter().filter(|(kind, ..)| kind == "step").map(|(_, step, _)| *step).collect()
}

/// These settings as arguments.
pub(crate) fn settings(set: &[&str]) -> Vec<String> {
    set.iter().flat_map(|setting| ["--set".to_owned(), (*setting).to_owned()]).collect()
}

/// Runs the command, which must end well; the JSON object on its standard output.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the command, which must fail without a result; what it says.
#[track_caller]
pub(crate) fn fail(command: &mut Command) -> String {
    failed(&command.output().unwrap())
}

/// What a command says that must have failed without a result.
#[track_caller]
pub(crate) fn failed(output: &Output) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    text
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
