//! `thinwire fetch`, with a cache as the hub's clients lay it out and a hub that cannot be reached.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{failure, json, thinwire};

/// One model at commit `c0ffee`, to which `main` refers.
fn cache(home: &Path) -> PathBuf {
    let model = home.join("hub/models--owner--small");
    let snapshot = model.join("snapshots/c0ffee");
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(model.join("refs")).unwrap();
    fs::write(model.join("refs/main"), "c0ffee").unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../train/tests/fixtures/families/qwen3");
    for name in ["config.json", "model.safetensors"] {
        fs::copy(fixture.join(name), snapshot.join(name)).unwrap();
    }
    fs::write(snapshot.join("tokenizer.json"), "{}").unwrap();
    snapshot
}

fn fetch(home: &Path, arguments: &[&str]) -> Command {
    let mut command = thinwire(["fetch"]);
    // Where nobody listens.
    command
        .args(arguments)
        .env("HF_HOME", home)
        .env("HF_ENDPOINT", "http://127.0.0.1:9")
        .env_remove("HF_TOKEN");
    command
}

#[test]
fn what_is_in_the_cache_is_told() {
    let home = tempfile::tempdir().unwrap();
    let snapshot = cache(home.path());
    for revision in ["main", "c0ffee"] {
        let report = json(&mut fetch(home.path(), &["owner/small", "--revision", revision]));
        assert_eq!(report["folder"], snapshot.to_str().unwrap());
        assert_eq!((&report["model"], &report["revision"]), (&"owner/small".into(), &revision.into()));
    }
    let printed = fetch(home.path(), &["owner/small"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8(printed).unwrap().trim_end(), snapshot.to_str().unwrap());
}

#[test]
fn what_cannot_be_fetched_is_named() {
    let home = tempfile::tempdir().unwrap();
    let error = failure(&mut fetch(home.path(), &["owner/other"]), 1);
    let expected =
        "cannot fetch `owner/other` (revision `main`) from the Hugging Face hub: no list of its files";
    assert!(error.contains(expected), "{error}");
    let error = failure(&mut fetch(home.path(), &["other"]), 1);
    assert!(error.contains("its name is not `owner/name`"), "{error}");
}
