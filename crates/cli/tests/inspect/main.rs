//! `thinwire inspect`, run as a user runs it.

mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod configs;
mod files;
#[path = "../common/run.rs"]
mod run;

use std::path::Path;

use common::{json, thinwire};
use serde_json::Value;

/// What `thinwire inspect` says of a path.
fn inspect(path: &Path, arguments: &[&str]) -> Value {
    json(thinwire(["inspect"]).arg(path).args(arguments))
}

/// The same as text.
fn text(path: &Path, arguments: &[&str]) -> String {
    let output = thinwire(["inspect"]).arg(path).args(arguments).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What it fails with.
fn refused(path: &Path, arguments: &[&str]) -> String {
    let text = common::failure(thinwire(["inspect"]).arg(path).args(arguments), 1);
    assert!(text.starts_with("error: ") && !text.contains("panicked"), "{text}");
    text
}
