//! Messages in a model's chat template.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::common::{failure, json, thinwire};
use super::{expected, folder};

/// A copy of the model that writes messages as they are, and ends answers with `~`, a special token.
fn talker(template: &str) -> tempfile::TempDir {
    let own = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(folder().join(name), own.path().join(name)).unwrap();
    }
    let tokenizer = fs::read(folder().join("tokenizer.json")).unwrap();
    let mut tokenizer: Value = serde_json::from_slice(&tokenizer).unwrap();
    tokenizer["added_tokens"] = json!([{
        "id": 63, "content": "~", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    }]);
    fs::write(own.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(own.path().join("chat_template.jinja"), template).unwrap();
    own
}

const TEMPLATE: &str =
    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}~{% endif %}{% endfor %}";

fn chat(model: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = thinwire(["generate", "--chat", "--model"]);
    command.arg(model).args(arguments);
    command
}

#[test]
fn a_message_goes_through_the_template() {
    let (prompt, greedy) = expected();
    let own = talker(&format!("{{% if messages[0].role == 'user' %}}{TEMPLATE}{{% endif %}}"));
    let arguments = ["--max-tokens", "24", "--prompt"];
    let report = json(chat(own.path(), &arguments).arg(&prompt));
    assert_eq!((&report["text"], &report["prompt_tokens"]), (&json!(greedy), &json!(1)));

    let own = talker(&format!("{{{{ messages[0].role }}}}:{TEMPLATE}"));
    let report = json(chat(own.path(), &arguments).args([&prompt, "--system", "BE_SHORT"]));
    assert_eq!(report["prompt_tokens"], "system:BE_SHORT".len() + 1);
}

#[test]
fn the_answer_ends_with_the_templates_turn() {
    let (prompt, greedy) = expected();
    // The model's own end of text is `?`; here a turn ends with a token that the answer has.
    let end = greedy.chars().nth(9).unwrap();
    let own = talker(&TEMPLATE.replace('~', &end.to_string()));
    let path = own.path().join("tokenizer.json");
    let tokenizer = fs::read_to_string(&path).unwrap();
    let mut tokenizer: Value = serde_json::from_str(&tokenizer).unwrap();
    tokenizer["added_tokens"][0]["content"] = json!(end);
    tokenizer["added_tokens"][0]["id"] = tokenizer["model"]["vocab"][end.to_string()].clone();
    fs::write(&path, tokenizer.to_string()).unwrap();
    let report = json(chat(own.path(), &["--max-tokens", "24", "--prompt"]).arg(&prompt));
    assert_eq!(report["end"], "stop");
    let text = greedy.split_once(end).unwrap().0.trim_end();
    assert_eq!(report["text"], text, "up to the first of them");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let error = failure(&mut chat(&folder(), &["--prompt", "HELLO"]), 1);
    assert!(error.contains("the model's chat template, and "), "{error}");
    assert!(error.contains("smollm2 has none (chat_template.jinja, "), "{error}");
    let own = talker("{{ raise_exception('no messages today') }}");
    let error = failure(&mut chat(own.path(), &["--prompt", "HELLO"]), 1);
    assert!(error.contains("error: the chat template: no messages today"), "{error}");
    failure(thinwire(["generate", "--model"]).arg(folder()).args(["--prompt", "A", "--system", "B"]), 2);
}
