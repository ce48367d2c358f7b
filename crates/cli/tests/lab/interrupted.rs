//! Experiments that are interrupted leave rows to go on with, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::experiment::{Lab, SETTINGS, can_have_networks};
use super::networks::{namespace, processes_in};
use super::processes::{Running, signal, wait_for};
use super::recipe::succeed;

/// Slow enough to be interrupted in: the second row takes minutes.
fn long() -> Lab {
    let lab = Lab::new(&format!("[[link]]\nrate = \"4mbit\"\n{SETTINGS}"));
    let text = fs::read_to_string(lab.recipe.path("e.toml")).unwrap();
    lab.write(&text.replace("[\"pipeline.tied=tah:g=32\"]", "[\"train.steps=100000\"]"));
    lab
}

/// Starts the experiment and waits until its second row trains; the namespaces of its stages.
fn start(lab: &Lab, arguments: &[&str]) -> (Running, BTreeSet<PathBuf>) {
    let metrics = lab.path("rows/4mbit/tah/seed-1/metrics.jsonl");
    let _ = fs::remove_file(&metrics); // of an earlier start
    let running = Running::launcher(&mut lab.command(arguments), &lab.recipe.path(""));
    wait_for(|| fs::read_to_string(&metrics).is_ok_and(|text| text.contains('\n')).then_some(()));
    let namespaces: BTreeSet<_> = running.stages().iter().filter_map(|(id, _)| namespace(*id)).collect();
    assert_eq!(namespaces.len(), 2, "each stage has a machine of its own");
    assert!(!namespaces.contains(&namespace(std::process::id()).unwrap()));
    assert_eq!(processes_in(&namespaces).len(), 4, "two stages, and what holds their machines");
    (running, namespaces)
}

/// A namespace without a process is gone, and with it its interfaces; nothing has a name outside.
#[track_caller]
fn nothing_is_left(lab: &Lab, running: &Running, namespaces: &BTreeSet<PathBuf>) {
    wait_for(|| processes_in(namespaces).is_empty().then_some(()));
    running.wait_for_no_stage();
    let interfaces = fs::read_dir("/sys/class/net").unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!interfaces.into_iter().any(|name| name == "next" || name == "previous"));
    for half in ["report.html", "report.json", "rows.csv", "plots"] {
        assert!(!lab.path(half).exists(), "{half}");
    }
}

#[test]
fn an_experiment_that_is_killed_leaves_nothing_but_rows() {
    if !can_have_networks("an experiment that is killed") {
        return;
    }
    let lab = long();
    for arguments in [&[][..], &["--resume"]] {
        let (running, namespaces) = start(&lab, arguments);
        signal("KILL", running.id());
        nothing_is_left(&lab, &running, &namespaces);
    }
}

#[test]
fn an_experiment_that_is_stopped_goes_on() {
    if !can_have_networks("an experiment that is stopped") {
        return;
    }
    let lab = long();
    let (running, namespaces) = start(&lab, &[]);
    let row = fs::read(lab.path("rows/4mbit/f32/seed-1/row.json")).unwrap();
    // As a terminal does, which sends it to every process in the foreground.
    for (id, _) in running.stages() {
        signal("INT", id);
    }
    signal("INT", running.id());
    nothing_is_left(&lab, &running, &namespaces);
    let output = running.output();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(
        text.contains("the experiment was stopped by SIGINT with 1 of 2 rows done; --resume keeps them"),
        "{text}"
    );
    assert!(output.stdout.is_empty());

    // Shortened, the second row comes to its end; the first is as it was.
    let text = fs::read_to_string(lab.recipe.path("e.toml")).unwrap();
    lab.write(&text.replace("train.steps=100000", "train.steps=3"));
    let report = succeed(&mut lab.command(&["--resume"]));
    assert_eq!(report["rows"][1]["losses"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read(lab.path("rows/4mbit/f32/seed-1/row.json")).unwrap(), row);
    assert!(lab.path("report.html").exists());
}
