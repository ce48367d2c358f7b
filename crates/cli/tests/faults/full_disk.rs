//! A disk that is full when a checkpoint is due.

use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use super::recipe::{Recipe, failed, steps, succeed};

/// The shell script, run where nobody else sees the small disk it mounts on its first argument.
fn on_a_small_disk(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size=1500k tmpfs \"$0\" && {script}");
    command.args(["--mount", "sh", "-c", &script]);
    command
}

#[test]
fn every_stage_says_so_and_earlier_checkpoints_stay() {
    let recipe = Recipe::new();
    let disk = recipe.path("run");
    fs::create_dir(&disk).unwrap();
    let probe = on_a_small_disk("true").arg(&disk).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        // Past the test harness, which would keep it to itself.
        writeln!(io::stderr(), "NOT RUN: a run on a full disk; it needs root to mount a small one").unwrap();
        return;
    }
    let set = ["train.steps=8", "checkpoint.every=1"];
    let train = recipe.train(2, &set);
    let mut command = on_a_small_disk("\"$@\"; code=$?; cp -a \"$0\" \"$0-copy\"; exit $code");
    command.arg(&disk).arg(train.get_program()).args(train.get_args());
    let error = failed(&command.output().unwrap());
    assert!(error.contains("error: stage ") && error.contains("No space left on device"), "{error}");
    assert!(error.contains("cannot write ") && error.contains("part of the checkpoint takes "), "{error}");

    // What was on the small disk, with room again.
    fs::remove_dir(&disk).unwrap();
    fs::rename(recipe.path("run-copy"), &disk).unwrap();
    let found = recipe.checkpoints();
    let whole: Vec<u64> = found.iter().filter(|(_, whole)| *whole).map(|(step, _)| *step).collect();
    assert!(!whole.is_empty() && whole.len() < 8, "{found:?}");
    assert_eq!(whole, (1..=whole.len() as u64).collect::<Vec<_>>(), "{found:?}");

    succeed(recipe.train(2, &set).arg("--resume"));
    let reference = Recipe::new();
    reference.report(2, &set);
    assert_eq!(steps(&recipe.metrics()), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(recipe.metrics(), reference.metrics());
}
