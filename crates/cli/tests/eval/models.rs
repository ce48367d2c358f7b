//! Models of others.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::common::{failure, json, thinwire};

/// A Hugging Face folder with a tokenizer of 64 characters, from `?` on.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../train/tests/fixtures/families/smollm2")
}

#[test]
fn a_hugging_face_folder_is_evaluated() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.txt");
    fs::write(&text, "THE_QUICK_BROWN_FOX_JUMPS_OVER_THE_LAZY_DOG").unwrap();
    let eval = |arguments: &[&str]| {
        let mut command = thinwire(["eval", "--model"]);
        command.arg(folder()).arg("--text").arg(&text).args(arguments);
        command
    };
    let plain = json(&mut eval(&["--tokens", "32"]));
    assert_eq!((&plain["tokens"], &plain["boundaries"]), (&json!(31), &json!([])));
    assert_eq!(plain.get("step"), None, "no run, no steps");
    let f32 = json(&mut eval(&["--tokens", "32", "--boundaries", "0,1,2,3", "--codec", "f32"]));
    assert_eq!(f32["perplexity"], plain["perplexity"], "bit for bit");
    let tah = json(&mut eval(&["--tokens", "32", "--boundaries", "1,2", "--codec", "tah:g=16,a=16"]));
    assert_eq!(tah["uncompressed"]["perplexity"], plain["perplexity"]);
    assert_ne!(tah["perplexity"], plain["perplexity"]);
    assert_eq!(tah["rel_sq_error"].as_array().unwrap().len(), 2);

    let error = failure(&mut eval(&["--boundaries", "1"]), 1);
    assert!(error.contains("choose one with --codec"), "{error}");
    let error = failure(&mut eval(&["--boundaries", "4", "--codec", "f32"]), 1);
    assert!(error.contains("boundary 4 does not exist: expected 0 (behind the embedding) to 3"), "{error}");
    let error = failure(&mut eval(&["--tokenizer", "byte"]), 1);
    assert!(error.contains("the tokenizer has 256 ids, the model only 64"), "{error}");
    let error = failure(&mut eval(&["--sequence", "129"]), 1);
    assert!(error.contains("sequences of 129 tokens: the model takes at most 128"), "{error}");
}
