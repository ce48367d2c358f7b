//! Models of others that are not what they should be, given to every command that loads one: what a user reads, and that
//! nothing is written.

#[path = "../common/mod.rs"]
mod common;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{failure, thinwire};
use place::{Kind, Place, edit_header};

/// A tensor in the second of several files.
const TENSOR: &str = "model.layers.1.mlp.down_proj.weight";

/// A recipe whose run would be in the folder `run` beside it.
const RECIPE: &str = r#"
    run = { dir = "run" }
    data = { train = "text.txt" }
    train = { steps = 1, sequence = 16, micro_batch = 1, micro_batches = 1 }
    pipeline = { forward = "f32", backward = "f32" }
"#;

/// Every command that loads a model, which is at `model`; what they would write is in `folder`.
fn commands(folder: &Path, model: &Path) -> Vec<Command> {
    fs::write(folder.join("text.txt"), "the then they say hello world ".repeat(20)).unwrap();
    let path = model.to_str().unwrap();
    fs::write(folder.join("recipe.toml"), format!("model.pretrained = {path:?}\n{RECIPE}")).unwrap();
    let (recipe, text) = (folder.join("recipe.toml"), folder.join("text.txt"));
    let mut train = thinwire(["train"]);
    train.arg(&recipe);
    let mut split = thinwire(["train", "--set", "pipeline.stages=2"]);
    split.arg(&recipe);
    let mut eval = thinwire(["eval", "--sequence", "32", "--model"]);
    eval.arg(model).arg("--text").arg(&text);
    let mut generate = thinwire(["generate", "--prompt", "hello", "--max-tokens", "2", "--model"]);
    generate.arg(model);
    let mut export = thinwire(["export", "--model"]);
    export.arg(model).arg("--out").arg(folder.join("out"));
    vec![train, split, eval, generate, export]
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) };
    entries.flat_map(below).collect()
}

/// Every command fails with a message that names `file` and says `reason`, and leaves no file behind.
#[track_caller]
fn refused(place: &Place, file: &Path, reason: &str) {
    let commands = commands(place.folder(), &place.model);
    let before = files(place.folder());
    for mut command in commands {
        let error = failure(&mut command, 1);
        let line = error.lines().find(|line| line.contains(file.to_str().unwrap()));
        assert!(line.is_some_and(|line| line.ends_with(reason)), "{command:?}\n{error}\nexpected {reason}");
        assert_eq!(files(place.folder()), before, "{command:?}");
        assert!(!place.folder().join("run").exists(), "no run begins: {command:?}");
    }
}

#[test]
fn a_sound_model_loads() {
    for kind in Kind::ALL {
        let place = Place::new(kind);
        for mut command in commands(place.folder(), &place.model) {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{kind:?} {command:?}");
            let _ = fs::remove_dir_all(place.folder().join("run")); // only training has one
        }
    }
}

#[test]
fn a_tensor_of_another_shape() {
    for kind in Kind::ALL {
        let place = Place::new(kind);
        place.transpose(TENSOR);
        let reason = format!("shape of tensor `{TENSOR}`: expected [16, 24], found [24, 16]");
        refused(&place, &place.file_of(TENSOR), &reason);
    }
}

#[test]
fn a_missing_tensor() {
    for kind in Kind::ALL {
        let place = Place::new(kind);
        let file = place.file_of(TENSOR);
        let unexpected = place.rename(TENSOR);
        let reason = match kind {
            // The index says where it should be.
            Kind::Shards => {
                format!("tensor `{TENSOR}`: expected one, as `model.safetensors.index.json` says, found none")
            }
            Kind::Folder | Kind::Gguf => {
                format!("does not hold the model it describes: missing: {TENSOR}; unexpected: {unexpected}")
            }
        };
        let named = if kind == Kind::Folder { place.model.clone() } else { file };
        refused(&place, &named, &reason);
    }
}

#[test]
fn a_file_that_is_cut_off() {
    for kind in Kind::ALL {
        let place = Place::new(kind);
        let file = place.file_of(TENSOR);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 9]).unwrap();
        let (bytes, left) = (whole.len(), whole.len() - 9);
        refused(
            &place,
            &file,
            &match kind {
                Kind::Folder | Kind::Shards => format!("size in bytes: expected {bytes}, found {left}"),
                Kind::Gguf => format!(
                    "tensor `output_norm.weight`: expected to end within the {left} bytes of the file, found 64 bytes at \
                     offset 20736 of the tensors, which start at 9664"
                ),
            },
        );
        fs::write(&file, &whole[..100]).unwrap();
        let header = u64::from_le_bytes(*whole.first_chunk().unwrap());
        refused(
            &place,
            &file,
            &match kind {
                Kind::Folder | Kind::Shards => {
                    format!(
                        "length of the header: expected at most 92 in a file of 100 bytes, found {header}"
                    )
                }
                Kind::Gguf => {
                    "expected 19 items of at least 13 bytes, found 76 bytes left of the 100 of the file"
                        .to_owned()
                }
            },
        );
    }
}

#[test]
fn a_file_that_is_not_there() {
    let place = Place::new(Kind::Folder);
    fs::remove_file(place.file_of(TENSOR)).unwrap();
    let reason = "weights: expected `model.safetensors` or `model.safetensors.index.json`, found neither";
    refused(&place, &place.model, reason);
    let place = Place::new(Kind::Shards);
    let file = place.file_of(TENSOR);
    fs::remove_file(&file).unwrap();
    refused(&place, &file, &format!("cannot open {}", file.display()));
    let place = Place::new(Kind::Gguf);
    fs::remove_file(&place.model).unwrap();
    refused(&place, &place.model, &format!("cannot open {}", place.model.display()));
}

#[test]
fn values_of_another_kind() {
    for kind in [Kind::Folder, Kind::Shards] {
        let place = Place::new(kind);
        edit_header(&place.file_of(TENSOR), |header| header[TENSOR]["dtype"] = "I32".into());
        let reason = format!("`tensor {TENSOR}` is I32, which is not supported; supported: F32, F16, BF16");
        refused(&place, &place.file_of(TENSOR), &reason);
    }
}

/// One with more ids than the model can be told by the model alone. Any other can be told by a run's hash of it, see
/// `eval/tokenizer.rs`.
#[test]
fn a_tokenizer_of_another_model() {
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/chat/tokenizer.json");
    for kind in [Kind::Folder, Kind::Shards] {
        let place = Place::new(kind);
        let file = place.model.join("tokenizer.json");
        fs::copy(&other, &file).unwrap();
        refused(&place, &file, "tokenizer: expected at most 400 tokens, as the model has, found 420");
        fs::remove_file(&file).unwrap();
        refused(&place, &place.model, "tokenizer: expected `tokenizer.json`, found none");
        fs::write(&file, &fs::read(&other).unwrap()[..300]).unwrap();
        refused(&place, &file, &format!("{} is damaged", file.display()));
    }
    for kind in Kind::ALL {
        let place = Place::new(kind);
        let [mut train, _, mut eval, mut generate, mut export] =
            <[Command; 5]>::try_from(commands(place.folder(), &place.model)).unwrap();
        let before = files(place.folder());
        for command in [&mut eval, &mut generate, &mut export] {
            let error = failure(command.arg("--tokenizer").arg(&other), 1);
            assert!(error.contains("the tokenizer has 420 ids, the model only 400"), "{error}");
        }
        let error = failure(train.arg("--set").arg(format!("data.tokenizer={}", other.display())), 1);
        assert!(error.contains("model.vocab = 400: expected at least the tokenizer's 420"), "{error}");
        assert_eq!(files(place.folder()), before);
    }
}
