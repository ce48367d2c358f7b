use serde_json::{Value, json};

use super::*;

fn question(format: Format, record: Value) -> Result<Question, String> {
    let Value::Object(record) = record else { panic!("records are objects") };
    format.question(&record).map_err(|error| error.to_string())
}

/// The same with the format named and told by its fields.
fn asked(format: Format, record: Value) -> (String, Vec<String>, usize) {
    let found = question(format, record.clone()).unwrap();
    assert_eq!(question(Format::Auto, record), Ok(found.clone()));
    assert_eq!(found.delimiter, " ");
    (found.context, found.choices, found.answer)
}

fn expected(context: &str, choices: &[&str], answer: usize) -> (String, Vec<String>, usize) {
    (context.to_owned(), choices.iter().map(ToString::to_string).collect(), answer)
}

#[test]
fn hellaswag() {
    let own = json!({
        "ind": 24, "activity_label": "Roof shingle removal", "ctx_a": "A man is sitting on a roof.",
        "ctx_b": "he", "ctx": "A man is sitting on a roof. he",
        "endings": ["is using wrap.", " is  ripping [step] tiles off.", "holds [title] a cube.", "starts."],
        "label": "3",
    });
    let choices =
        ["is using wrap.", "is ripping tiles off.", "holds.  a cube.".replace("  ", " ").leak(), "starts."];
    let context = "Roof shingle removal: A man is sitting on a roof. He";
    assert_eq!(asked(Format::HellaSwag, own), expected(context, &choices, 3));
    let plain = json!({ "question": "A man. he", "answer": ["is", "was"], "label": 1 });
    assert_eq!(asked(Format::HellaSwag, plain), expected("A man. he", &["is", "was"], 1));
    let unanswered = json!({ "question": "A man. he", "answer": ["is", "was"] });
    let reason = "no answer: none of `label`, `answer`, `answerKey`, `gold` is there";
    assert_eq!(question(Format::Auto, unanswered), Err(reason.to_owned()));
}

#[test]
fn piqa() {
    let prompt = "Question: Make outdoor pillow.\nAnswer:";
    let own = json!({ "goal": "Make outdoor pillow.", "sol1": "tie it", "sol2": "glue it", "label": 1 });
    assert_eq!(asked(Format::Piqa, own), expected(prompt, &["tie it", "glue it"], 1));
    let other = json!({
        "question": "Make outdoor pillow.",
        "options": "A. tie it \nB. glue it\nin a bag", "answer": "B. glue it\nin a bag",
    });
    assert_eq!(asked(Format::Piqa, other), expected(prompt, &["tie it", "glue it\nin a bag"], 1));
}

#[test]
fn arc() {
    let prompt = "Question: Which is hot?\nAnswer:";
    for (labels, key) in [(["A", "B", "C"], "C"), (["1", "2", "3"], "3")] {
        let choices = json!({ "text": ["ice", "snow", "fire"], "label": labels });
        let own = json!({ "id": "x", "question": "Which is hot?", "choices": choices, "answerKey": key });
        assert_eq!(asked(Format::Arc, own), expected(prompt, &["ice", "snow", "fire"], 2));
    }
}

#[test]
fn mmlu() {
    let prompt = "Two plus two?\nA. one\nB. two\nC. three\nD. four\nAnswer:";
    let letters = ["A", "B", "C", "D"];
    let texts = json!(["one", "two", "three", "four"]);
    let own =
        json!({ "question": " Two plus two?", "subject": "high_school", "choices": texts, "answer": 3 });
    let description = "The following are multiple choice questions (with answers) about high school.\n\n";
    assert_eq!(asked(Format::Mmlu, own), expected(&format!("{description}{prompt}"), &letters, 3));
    for options in ["A. one\nB. two\nC. three\nD. four", "\nA. one\nB. two\nC. three\nD. four\n"] {
        let other = json!({ "question": "Two plus two?", "options": options, "answer": "D. four" });
        assert_eq!(asked(Format::Mmlu, other), expected(prompt, &letters, 3));
    }
}

#[test]
fn boolq() {
    let prompt = "Sky -- It is blue.\nQuestion: is it blue?\nAnswer:";
    for (field, value, answer) in [
        ("label", json!(true), 1),
        ("label", json!(0), 0),
        ("answer", json!("False"), 0),
        ("answer", json!("True"), 1),
    ] {
        let record = json!({ "passage": "Sky -- It is blue.", "question": "is it blue", field: value });
        assert_eq!(asked(Format::BoolQ, record), expected(prompt, &["no", "yes"], answer));
    }
}

#[test]
fn generic() {
    let delimiter = |context: &str, choices: [&str; 2]| {
        let record = json!({ "context": context, "choices": choices, "answer": choices[1] });
        let question = question(Format::Auto, record).unwrap();
        assert_eq!((question.context.as_str(), question.answer), (context, 1));
        question.delimiter
    };
    assert_eq!(delimiter("One and", ["two", "three"]), " ");
    assert_eq!(delimiter("One and", [" two", " three"]), "");
    assert_eq!(delimiter("One\n", ["two", "three"]), "");
}

#[test]
fn records_without_a_question_or_an_answer_are_refused() {
    for (record, reason) in [
        (json!({ "text": "x", "id": 1 }), "the fields `id`, `text` are those of no known format"),
        (
            json!({ "context": "x", "choices": ["a", "b"], "answer": 2 }),
            "the answer 2 is none of the 2 choices",
        ),
        (
            json!({ "context": "x", "choices": ["a", "b"], "answer": "c" }),
            "the answer \"c\" is none of the 2 choices",
        ),
        (json!({ "context": "x", "choices": ["a"], "answer": 0 }), "1 choices: at least 2 are needed"),
        (json!({ "context": "x", "choices": ["a", ""], "answer": 0 }), "choice 1 is empty"),
        (
            json!({ "context": "x", "choices": ["a", 1], "answer": 0 }),
            "`choices` or `options` is missing or not texts",
        ),
        (json!({ "context": 1, "choices": ["a", "b"], "answer": 0 }), "`context` is missing or not a string"),
        (json!({ "passage": "x", "question": "y", "label": 2 }), "the answer 2 is none of the 2 choices"),
    ] {
        assert_eq!(question(Format::Auto, record), Err(reason.to_owned()));
    }
}
