//! A small trained run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::common::thinwire;

/// Two blocks in three stages, each boundary with codecs of its own; a checkpoint after steps 2 and 4.
const RECIPE: &str = r#"
    run = { dir = "run", seed = 5 }
    model = { family = "llama", layers = 2, hidden = 32, heads = 4, kv_heads = 2, ffn = 48, context = 32, tie_embeddings = false }
    data = { train = "train.txt", heldout = "heldout.txt" }
    train = { steps = 4, sequence = 32, micro_batch = 3, micro_batches = 4 }
    optimizer = { learning_rate = 0.01, warmup_steps = 2 }
    eval = { tokens = 301, micro_batch = 2 }
    checkpoint = { every = 2 }

    [pipeline]
    stages = 3
    layers = ["embed 0", "1", "head"]
    forward = "tah:g=32,a=32"
    backward = "fixed:bits=6,group=64"

    [[pipeline.boundary]]
    before = 1
    forward = "fixed:bits=4,group=32"
"#;

/// The settings that make it a GPT-2 with a tied head.
pub(crate) const GPT2: [&str; 3] = ["model.family=gpt2", "model.kv_heads=4", "model.tie_embeddings=true"];

/// A run's folder beside its recipe and texts, and what `thinwire train` said at its end.
pub(crate) struct Run {
    folder: tempfile::TempDir,
    pub(crate) report: Value,
}

impl Run {
    /// Trains with these `--set` arguments.
    pub(crate) fn train(overrides: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sentence = |i: usize| format!("{} sheep and {} goats; ", i * 7 % 97, i * i % 89);
        let text = (0..400).map(sentence).collect::<Vec<_>>().concat();
        fs::write(folder.path().join("train.txt"), &text[..6000]).unwrap();
        fs::write(folder.path().join("heldout.txt"), &text[6000..7000]).unwrap();
        fs::write(folder.path().join("recipe.toml"), RECIPE).unwrap();
        let mut command = thinwire(["train", "--json"]);
        command.arg(folder.path().join("recipe.toml"));
        let output = command.args(overrides.iter().flat_map(|set| ["--set", set])).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { folder, report: serde_json::from_slice(&output.stdout).unwrap() }
    }

    /// A file beside the run's folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The run's folder.
    pub(crate) fn dir(&self) -> PathBuf {
        self.beside("run")
    }

    /// The folder of the checkpoint of step `step`.
    pub(crate) fn step(&self, step: u64) -> PathBuf {
        self.dir().join(format!("checkpoints/step-{step:08}"))
    }
}

/// Changes the manifest in a step folder.
pub(crate) fn edit_manifest(step: &Path, edit: impl FnOnce(&mut Value)) {
    let path = step.join("manifest.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}
