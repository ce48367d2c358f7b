//! Experiments without links of their own, which need no root.

use std::fs;

use serde_json::Value;

use super::experiment::{Lab, SETTINGS};
use super::recipe::{fail, failed, succeed};

#[test]
fn the_matrix_is_shown_and_nothing_is_run() {
    let lab = Lab::new(SETTINGS);
    let matrix = succeed(&mut lab.command(&["--dry-run", "--set", "train.steps=3"]));
    let names: Vec<&str> =
        matrix["rows"].as_array().unwrap().iter().map(|row| row["setting"].as_str().unwrap()).collect();
    assert_eq!(names, ["f32", "tah"]);
    let command = matrix["rows"][1]["command"].to_string();
    assert!(command.contains("pipeline.tied=tah:g=32") && command.contains("train.steps=3"), "{command}");
    assert!(!lab.path("").exists());
    let error = fail(&mut lab.command(&["--dry-run", "--set", "train.stepz=3"]));
    assert!(error.contains("row f32 / seed 1") && error.contains("did you mean train.steps?"), "{error}");
}

#[test]
fn texts_that_are_not_there_are_told_before_any_row_runs() {
    let last = r#"
    [[setting]]
    name = "elsewhere"
    set = ["data.heldout=no-such.txt"]
    "#;
    let lab = Lab::new(&format!("{SETTINGS}{last}"));
    for arguments in [&[][..], &["--dry-run"]] {
        let error = fail(&mut lab.command(arguments));
        assert!(error.contains("error: data.heldout of the row elsewhere / seed 1"), "{error}");
        assert!(error.contains("cannot read ") && error.contains("no-such.txt"), "{error}");
    }
    assert!(!lab.path("").exists());
}

#[test]
fn rows_that_fail_are_in_the_report_and_rows_that_are_done_are_kept() {
    let diverging = r#"
    [[setting]]
    name = "diverges"
    set = ["optimizer.learning_rate=1e30", "optimizer.warmup_steps=0"]
    "#;
    let lab = Lab::new(&format!("{SETTINGS}{diverging}"));
    let output = lab.command(&[]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("row 3 of 3: diverges / seed 1, about ") && text.contains("1 of 3 rows failed"),
        "{text}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report, lab.report());
    let rows = report["rows"].as_array().unwrap();
    assert!(rows[2]["error"].as_str().unwrap().contains("stage "), "{}", rows[2]["error"]);
    assert!(rows[2]["final_loss"].is_null() && rows[2]["losses"].as_array().unwrap().len() < 6);
    for row in &rows[..2] {
        assert_eq!((row["error"].is_null(), row["losses"].as_array().unwrap().len()), (true, 6));
        let [first, second] = &row["stages"].as_array().unwrap()[..] else { panic!("two stages") };
        let peaks = [first, second].map(|stage| stage["peak_memory"].as_u64());
        assert!(
            !cfg!(target_os = "linux") || peaks.iter().all(|peak| peak.unwrap() > 1_000_000),
            "{peaks:?}"
        );
    }
    let bits = |row: &Value| row["forward"]["bits_per_element"].as_f64().unwrap();
    assert!((bits(&rows[0]) - 32.0).abs() < 0.1 && bits(&rows[1]) < 6.0);
    assert_eq!(rows[0]["speedups"][0]["factor"], 1.0);
    for name in ["report.html", "rows.csv", "plots/loss-steps.svg"] {
        assert!(lab.path(name).exists(), "{name}");
    }
    assert!(!lab.path("rows/f32/seed-1/checkpoints").exists(), "checkpoints are large");
    let refused = fail(&mut lab.command(&[]));
    assert!(refused.contains("already holds rows") && refused.contains("--resume"), "{refused}");

    // Unchanged: only what failed is run again. Changed: all is.
    let output = lab.command(&["--resume"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("row 3 of 3") && !text.contains("row 1 of 3"), "{text}");
    assert_eq!(lab.report()["rows"][0], rows[0]);
    let changed = succeed(&mut lab.command(&["--resume", "--row", "f32", "--set", "train.steps=4"]));
    assert_eq!(changed["rows"].as_array().unwrap().len(), 1);
    assert_eq!(changed["rows"][0]["losses"].as_array().unwrap().len(), 4);
}

#[test]
fn a_failure_may_end_the_experiment() {
    let lab = Lab::new("");
    let text = fs::read_to_string(lab.recipe.path("e.toml")).unwrap();
    let settings = r#"
    on_failure = "stop"
    [[setting]]
    name = "f32"
    set = ["optimizer.learning_rate=1e30", "optimizer.warmup_steps=0"]
    [[setting]]
    name = "later"
    "#;
    lab.write(&format!("{text}{settings}"));
    let error = failed(&lab.command(&[]).output().unwrap());
    assert!(
        error.contains("error: the row f32 / seed 1 failed: ") && !error.contains("row 2 of 2"),
        "{error}"
    );
    assert!(!lab.path("report.json").exists() && !lab.path("rows/later").exists());

    // What is to be replaced is gone as soon as the first row runs, wherever that ends.
    succeed(&mut lab.command(&["--resume", "--row", "later"]));
    let left =
        || ["row.json", "metrics.jsonl"].map(|name| lab.path(&format!("rows/later/seed-1/{name}")).exists());
    assert_eq!(left(), [true; 2]);
    failed(&lab.command(&["--overwrite"]).output().unwrap());
    assert_eq!(left(), [false; 2], "a run that fails before its first step has none of an earlier one's");
}

#[test]
fn gradients_are_compared_in_one_process() {
    let lab = Lab::new(SETTINGS);
    let plain = succeed(&mut lab.command(&[]));
    let experiment = fs::read_to_string(lab.recipe.path("e.toml")).unwrap();
    lab.write(&format!("{experiment}\n[fidelity]\nevery = 2\nbatches = 2\n"));
    let compared = succeed(&mut lab.command(&["--overwrite"]));
    let losses = |report: &Value, row: usize| -> Vec<f64> {
        let losses = report["rows"][row]["losses"].as_array().unwrap();
        losses.iter().map(|point| point["loss"].as_f64().unwrap()).collect()
    };
    for row in 0..2 {
        assert_eq!(losses(&compared, row), losses(&plain, row), "the same run, to the bit");
    }
    let points = |row: usize| compared["rows"][row]["fidelity"].as_array().unwrap().clone();
    let errors = |row: usize| {
        points(row).iter().map(|point| point["step_error"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        points(1).iter().map(|point| point["step"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 2, 4, 6]
    );
    assert!(errors(0).iter().all(|error| *error == 0.0), "{:?}", errors(0));
    assert!(errors(1).iter().all(|error| *error > 1e-5 && *error < 0.5), "{:?}", errors(1));
    assert!(compared["rows"][1]["tokens_per_second"].is_null(), "comparing takes time");
    for name in ["plots/gradient-step.svg", "plots/gradient-mean.svg", "plots/loss-steps.svg"] {
        assert!(lab.path(name).exists(), "{name}");
    }
    assert!(!lab.path("plots/loss-time.svg").exists());
    let page = fs::read_to_string(lab.path("report.html")).unwrap();
    assert!(page.contains("Relative squared error of the gradient"));
    lab.write(&format!("{experiment}\n[fidelity]\nevery = 3\nbatches = 2\n"));
    let resumed = succeed(&mut lab.command(&["--resume"]));
    assert_eq!(
        resumed["rows"][1]["fidelity"][1]["step"], 3,
        "rows that were compared otherwise are not kept"
    );
}
