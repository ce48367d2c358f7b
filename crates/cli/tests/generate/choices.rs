//! Multiple-choice questions.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::common::{failure, json, thinwire};
use super::{fixtures, folder};

const QUESTIONS: &str = r#"
{"context": "THE_QUICK", "choices": ["BROWN", "FOX"], "answer": 0}
{"context": "THE_LAZY", "choices": ["DOG", "CATS", "GNU"], "answer": "GNU"}
{"question": "what", "options": "A. this\nB. that", "answer": "B. that"}
{"question": "what", "options": "A. this\nB. that"}
{"passage": "cut off
{"question": "which", "choices": {"text": ["one", "two", "six"], "label": ["A", "B", "C"]}, "answerKey": "C"}
"#;

fn eval(questions: &str, arguments: &[&str]) -> (tempfile::NamedTempFile, Command) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), questions).unwrap();
    let mut command = thinwire(["eval", "--model"]);
    command.arg(folder()).arg("--choices").arg(file.path()).args(arguments);
    (file, command)
}

#[test]
fn questions_of_several_formats_are_asked_and_damaged_lines_named() {
    let (_file, mut command) = eval(QUESTIONS, &[]);
    let report = json(&mut command);
    assert_eq!((&report["questions"], &report["damaged"]), (&json!(4), &json!(2)));
    let lines: Vec<_> = (0..2).map(|i| report["damaged_lines"][i]["line"].clone()).collect();
    assert_eq!(lines, [5, 6]);
    assert!(report["damaged_lines"][0]["reason"].as_str().unwrap().starts_with("no answer"), "{report}");
    for share in ["acc", "acc_norm", "acc_bytes", "acc_tokens"] {
        let quarters = report[share].as_f64().unwrap() * 4.0;
        assert_eq!(quarters, quarters.round(), "{share}");
    }

    let (_file, mut command) =
        eval(QUESTIONS, &["--limit", "2", "--boundaries", "1", "--codec", "tah:g=16,a=16"]);
    let report = json(&mut command);
    assert_eq!(
        (&report["questions"], &report["damaged"], &report["boundaries"]),
        (&json!(2), &json!(0), &json!([1]))
    );
    assert!(report["rel_sq_error"][0].as_f64().unwrap() > 0.0);
}

#[test]
fn ranks_that_share_the_model_choose_alike() {
    let model = fixtures().join("families/llama2");
    let tokenizer = folder().join("tokenizer.json");
    let report = |ranks| {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), QUESTIONS).unwrap();
        let mut command = thinwire(["eval", "--tensor-parallel", ranks, "--model"]);
        command.arg(&model).arg("--tokenizer").arg(&tokenizer).arg("--choices").arg(file.path());
        json(&mut command)
    };
    let (alone, shared) = (report("1"), report("2"));
    assert_eq!((&shared["acc"], &shared["acc_norm"]), (&alone["acc"], &alone["acc_norm"]));
    assert_eq!(alone.get("all_reduce"), None);
    assert_eq!(
        (&shared["all_reduce"]["ranks"], &shared["all_reduce"]["all_reduce"]),
        (&json!(2), &json!("exact"))
    );
}

#[test]
fn files_without_a_question_are_refused() {
    let (_file, mut command) = eval("{}\n", &[]);
    let error = failure(&mut command, 1);
    assert!(error.contains("has no question that can be used: 1 of 1 lines are damaged; line 1:"), "{error}");
    let (_file, mut command) = eval(QUESTIONS, &["--format", "riddle"]);
    assert!(failure(&mut command, 2).contains("expected auto, generic, hellaswag"));
    let (_file, mut command) = eval(QUESTIONS, &["--text", "text.txt"]);
    failure(&mut command, 2);
}
