//! Models with a `tokenizer.json`.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::common::{failure, json};
use super::eval;
use super::run::Run;

/// A tokenizer of the words of the text.
fn word_level(extra: &str) -> String {
    let words = ["[UNK]", "sheep", "goats;", "and", "7", "14", extra];
    let vocab: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    })
    .to_string()
}

#[test]
fn the_tokenizer_must_be_that_of_training() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, word_level("21")).unwrap();
    let run = Run::train(&[&format!("data.tokenizer=\"{}\"", path.display())]);
    let report = json(&mut eval(&run, &run.dir(), &[]));
    assert!(report["tokens"].as_u64().unwrap() < 400, "words, not bytes");

    fs::rename(&path, run.beside("moved.json")).unwrap();
    let text = failure(&mut eval(&run, &run.dir(), &[]), 1);
    assert!(text.contains("cannot read ") && text.contains("tokenizer.json"), "{text}");
    let moved = run.beside("moved.json");
    let moved = ["--tokenizer", moved.to_str().unwrap()];
    let again = json(&mut eval(&run, &run.dir(), &moved));
    assert_eq!(again["perplexity"], report["perplexity"]);

    fs::write(&path, word_level("28")).unwrap();
    let text = failure(&mut eval(&run, &run.dir(), &[]), 1);
    assert!(text.contains("the model was trained with `tokenizer.json sha256:"), "{text}");
    let text = failure(&mut eval(&run, &run.dir(), &["--tokenizer", "byte"]), 1);
    assert!(text.contains("this is `byte`"), "{text}");

    let alone = run.beside("step-00000004");
    fs::rename(run.step(4), &alone).unwrap();
    let text = failure(&mut eval(&run, &alone, &["--codec", "tah"]), 1);
    assert!(text.contains("name the file with --tokenizer"), "{text}");
    json(eval(&run, &alone, &["--codec", "tah"]).args(moved));
}

#[test]
fn a_gguf_file_lends_its_tokenizer_whatever_its_model() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pretrained/tests/fixtures/sentence_piece");
    let plain = fixtures.join("plain.gguf");
    let run = Run::train(&[&format!("data.tokenizer=\"{}\"", plain.display())]);
    let report = json(&mut eval(&run, &run.dir(), &[]));
    assert!(report["tokens"].as_u64().unwrap() < 900, "fewer than bytes: {report}");
    let prefix = fixtures.join("prefix.gguf");
    let text = failure(&mut eval(&run, &run.dir(), &["--tokenizer", prefix.to_str().unwrap()]), 1);
    assert!(text.contains("the model was trained with `tokenizer.json sha256:"), "{text}");
}
