//! `thinwire eval`, run as a user runs it.

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod models;
#[path = "../common/run.rs"]
mod run;
mod tensor_parallel;
mod tokenizer;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{failure, json, thinwire};
use run::{GPT2, Run};
use serde_json::{Value, json};

/// `thinwire eval` of a model on the run's held-out text.
fn eval(run: &Run, model: &Path, arguments: &[&str]) -> Command {
    let mut command = thinwire(["eval", "--text"]);
    command.arg(run.beside("heldout.txt")).arg("--model").arg(model).args(arguments);
    command
}

/// The 301 tokens that the run itself predicts, and the one in front of them.
const TOKENS: [&str; 2] = ["--tokens", "302"];

#[test]
fn the_runs_own_boundaries_give_the_perplexity_it_reports() {
    for overrides in [&[][..], &GPT2] {
        let run = Run::train(overrides);
        let report = json(&mut eval(&run, &run.dir(), &TOKENS));
        assert_eq!(report["perplexity"], run.report["heldout_perplexity"], "bit for bit");
        assert_eq!(report["tokens"], 301);
        assert_eq!(report["boundaries"], json!([1, 2]));
        assert_eq!(report["codec"][0], "fixed:bits=4,group=32");
        assert!(report["codec"][1].as_str().unwrap().starts_with("tah:g=32,a=32,"));
        // 4 bits a value, 16 a group of 32 (the tokens are whole groups), 4 bytes of header for each of 6 messages.
        let expected = 4.0 + 16.0 / 32.0 + 6.0 * 32.0 / (301.0 * 32.0);
        assert!((report["bits_per_element"][0].as_f64().unwrap() - expected).abs() < 1e-9, "{report}");
        for error in report["rel_sq_error"].as_array().unwrap() {
            assert!((1e-4..0.1).contains(&error.as_f64().unwrap()), "{report}");
        }
        assert_ne!(report["uncompressed"]["perplexity"], report["perplexity"]);
        assert_eq!(
            (&report["step"], &report["sequence"], &report["micro_batch"]),
            (&json!(4), &json!(32), &json!(2))
        );
    }
}

/// Every sample comes for the first time.
#[test]
fn aqsgd_compresses_nothing_outside_a_run() {
    let run = Run::train(&["pipeline.forward=aqsgd"]);
    let report = json(&mut eval(&run, &run.dir(), &TOKENS));
    assert!(report["codec"][1].as_str().unwrap().starts_with("aqsgd:bits=4,"), "{report}");
    assert_eq!(report["rel_sq_error"][1], 0.0);
    // 32 bits a value; 4 bytes for each of 6 messages, 16 for each of 10 samples.
    let expected = 32.0 + 8.0 * (6.0 * 4.0 + 10.0 * 16.0) / (301.0 * 32.0);
    assert!((report["bits_per_element"][1].as_f64().unwrap() - expected).abs() < 1e-9, "{report}");
    let forward = &run.report["links"][2];
    assert_eq!((&forward["from"], &forward["direction"]), (&json!(1), &json!("forward")), "{}", run.report);
    // 48 training sequences of 32 tokens, and the 301 held-out tokens.
    assert_eq!(forward["memory_bytes"], (48 * 32 + 301) * 32 * 4);
}

#[test]
fn f32_codecs_and_no_boundaries_change_no_bit() {
    let run = Run::train(&[]);
    let own = json(&mut eval(&run, &run.dir(), &TOKENS));
    let uncompressed = &own["uncompressed"]["perplexity"];
    let f32_at = |boundaries| [&["--boundaries", boundaries, "--codec", "f32"][..], &TOKENS].concat();
    let none = [&["--boundaries", "none"][..], &TOKENS].concat();
    for (arguments, expected) in
        [(f32_at("2,0,1"), json!([0, 1, 2])), (f32_at("1"), json!([1])), (none, json!([]))]
    {
        let report = json(&mut eval(&run, &run.dir(), &arguments));
        assert_eq!(report["boundaries"], expected, "{arguments:?}");
        assert_eq!(&report["perplexity"], uncompressed, "{expected}");
        assert_eq!(&report["uncompressed"]["perplexity"], uncompressed, "{expected}");
        for (bits, error) in own_lists(&report) {
            assert!(bits > 32.0 && error == 0.0);
        }
    }
    // A boundary that the run does not have is compressed as [pipeline] says.
    let report = json(&mut eval(&run, &run.dir(), &["--boundaries", "0"]));
    assert!(report["codec"][0].as_str().unwrap().starts_with("tah:g=32,"));
    assert_eq!(report["tokens"], 999, "the whole text");
}

fn own_lists(report: &Value) -> Vec<(f64, f64)> {
    let list = |name: &str| -> Vec<f64> {
        report[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    list("bits_per_element").into_iter().zip(list("rel_sq_error")).collect()
}

#[test]
fn shapes_may_be_chosen() {
    let run = Run::train(&[]);
    let lossless = |arguments: &[&str]| {
        let report = json(eval(&run, &run.dir(), &TOKENS).args(["--codec", "f32"]).args(arguments));
        report["perplexity"].as_f64().unwrap()
    };
    let base = lossless(&[]);
    assert!((lossless(&["--micro-batch", "7"]) / base - 1.0).abs() < 1e-5, "the same sums in another order");
    assert!((lossless(&["--sequence", "8"]) / base - 1.0).abs() > 1e-4, "less context");
}

#[test]
fn windows_may_overlap() {
    let run = Run::train(&[]);
    let report = |arguments: &[&str]| {
        let mut report = json(eval(&run, &run.dir(), &TOKENS).args(arguments));
        report.as_object_mut().unwrap().remove("seconds");
        report
    };
    let whole = report(&[]);
    assert_eq!(whole["stride"], 32);
    assert_eq!(report(&["--stride", "32"]), whole, "bit for bit");
    let finer = report(&["--stride", "8"]);
    assert_eq!((&finer["stride"], &finer["tokens"]), (&json!(8), &json!(301)), "each token once");
    // ceil((301 - 32) / 8) + 1 = 35 windows, 34 of them full and two in a message.
    assert_eq!(finer["messages"], json!([18, 18]));
    assert_ne!(finer["uncompressed"]["perplexity"], whole["uncompressed"]["perplexity"]);
    assert_ne!(finer["perplexity"], finer["uncompressed"]["perplexity"]);
}

#[test]
fn the_newest_complete_checkpoint_or_the_one_named() {
    let run = Run::train(&[]);
    let newest = json(&mut eval(&run, &run.dir(), &[]));
    let by_folder = json(&mut eval(&run, &run.step(4), &[]));
    assert_eq!((&newest["step"], &newest["perplexity"]), (&by_folder["step"], &by_folder["perplexity"]));
    let earlier = json(&mut eval(&run, &run.step(2), &[]));
    assert_eq!(earlier["step"], 2);
    assert_ne!(earlier["perplexity"], newest["perplexity"]);

    fs::remove_file(run.step(4).join("layer-0001.safetensors")).unwrap();
    let report = json(&mut eval(&run, &run.dir(), &[]));
    assert_eq!((&report["step"], &report["perplexity"]), (&json!(2), &earlier["perplexity"]));
    fs::remove_file(run.step(2).join("manifest.json")).unwrap();
    let text = failure(&mut eval(&run, &run.dir(), &[]), 1);
    assert!(text.contains("run/checkpoints has no complete checkpoint"), "{text}");
}

#[test]
fn a_checkpoint_without_its_run_needs_a_codec() {
    let run = Run::train(&[]);
    let alone = run.beside("step-00000004");
    fs::rename(run.step(4), &alone).unwrap();
    let text = failure(&mut eval(&run, &alone, &[]), 1);
    assert!(text.contains("choose one with --codec"), "{text}");
    let report = json(&mut eval(&run, &alone, &["--codec", "tah", "--tokens", "51"]));
    assert_eq!(
        (&report["boundaries"], &report["tokens"]),
        (&json!([1, 2]), &json!(50)),
        "the manifest's stages"
    );
    assert_eq!((&report["sequence"], &report["micro_batch"]), (&json!(32), &json!(8)));
    json(&mut eval(&run, &alone, &["--boundaries", "none"]));
}

#[test]
fn text_output_says_the_same() {
    let run = Run::train(&[]);
    let report = json(&mut eval(&run, &run.dir(), &[]));
    let output = eval(&run, &run.dir(), &[]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let perplexity = format!("perplexity {:.4}", report["perplexity"].as_f64().unwrap());
    for part in ["step 4", "999 tokens", &perplexity, "fixed:bits=4,group=32"] {
        assert!(text.contains(part), "{text}");
    }
}
