//! Run folders, settings and texts that do not do.

use std::fs;

use super::processes::{Running, wait_for};
use super::recipe::{Recipe, fail, steps, succeed};

#[test]
fn an_earlier_run_is_kept_unless_it_is_to_be_replaced() {
    let recipe = Recipe::new();
    let error = fail(recipe.train(2, &[]).arg("--resume"));
    assert!(error.contains("run holds no run to resume"), "{error}");

    recipe.report(2, &[]);
    let before = recipe.metrics();
    let error = fail(&mut recipe.train(2, &[]));
    assert!(
        error.contains("already holds a run: continue it with --resume, replace it with --overwrite"),
        "{error}"
    );
    assert_eq!((recipe.metrics(), recipe.checkpoints().len()), (before, 3));

    fs::write(recipe.path("run/notes.txt"), "mine").unwrap();
    succeed(recipe.train(2, &["train.steps=3", "run.seed=6"]).arg("--overwrite"));
    assert_eq!(steps(&recipe.metrics()), [1, 2, 3]);
    assert_eq!(recipe.checkpoints(), [(2, true), (3, true)]);
    assert_eq!(fs::read_to_string(recipe.path("run/notes.txt")).unwrap(), "mine");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let recipe = Recipe::new();
    let set = ["train.steps=100000"];
    let running = Running::launcher(&mut recipe.train(2, &set), &recipe.path(""));
    wait_for(|| (!recipe.metrics().is_empty()).then_some(()));
    for how in ["--resume", "--overwrite"] {
        let error = fail(recipe.train(2, &set).arg(how));
        assert!(error.contains("run is in use by a run that goes on"), "{error}");
    }
    assert!(!recipe.metrics().is_empty());
    drop(running);
}

#[test]
fn a_run_that_failed_before_its_first_step_is_not_in_the_way() {
    let recipe = Recipe::new();
    // No process starts in a microsecond.
    fail(&mut recipe.train(2, &["pipeline.deadline_seconds=0.000001", "pipeline.connect_seconds=0.000001"]));
    assert!(recipe.path("run/thinwire.toml").exists() && recipe.metrics().is_empty());
    recipe.report(2, &[]);
}

#[test]
fn a_run_does_not_go_on_as_another() {
    let recipe = Recipe::new();
    recipe.report(2, &[]);
    let written = fs::read(recipe.path("run/thinwire.toml")).unwrap();
    let error = fail(recipe.train(2, &["train.steps=8", "run.seed=6"]).arg("--resume"));
    assert!(error.contains("manifest.json: seed: expected 6, found 5"), "{error}");
    assert_eq!(fs::read(recipe.path("run/thinwire.toml")).unwrap(), written, "what the run was made with");
    succeed(recipe.train(2, &["train.steps=8"]).arg("--resume"));
    assert_eq!(steps(&recipe.metrics()), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn wrong_settings_and_texts_are_named_and_nothing_is_made() {
    let recipe = Recipe::new();
    let error = fail(&mut recipe.train(2, &["optimizer.lr=0.1"]));
    assert!(error.contains("optimizer.lr: unknown key; did you mean optimizer.learning_rate?"), "{error}");
    let error = fail(&mut recipe.train(2, &["data.train=nothing.txt"]));
    assert!(error.contains("nothing.txt") && error.contains("No such file"), "{error}");
    fs::write(recipe.path("empty.txt"), "").unwrap();
    for key in ["data.train", "data.heldout"] {
        let error = fail(&mut recipe.train(2, &[&format!("{key}=empty.txt")]));
        assert!(error.contains("empty.txt holds 0 tokens; at least 2 are needed"), "{error}");
    }
    fs::create_dir(recipe.path("folder.txt")).unwrap();
    let error = fail(&mut recipe.train(2, &["data.train=folder.txt"]));
    assert!(error.contains("folder.txt names no files"), "{error}");
    assert!(!recipe.path("run").exists());
}

#[test]
fn learning_that_diverges_stops_by_either_policy() {
    for (policy, expected) in
        [("stop", " is not finite"), ("skip-step", "10 steps in a row were skipped, the last because ")]
    {
        let recipe = Recipe::new();
        let policy = format!("pipeline.non_finite={policy}");
        let set = [
            &policy,
            "train.steps=40",
            "optimizer.learning_rate=1e30",
            "optimizer.clip_norm=0",
            "eval.every=0",
        ];
        let error = fail(&mut recipe.train(3, &set));
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("error: stage ") && error.contains(" of step "), "{error}");
    }
}
