//! Conversations become the tokens and masks that transformers makes of them: see `chat/generate.py`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thinwire_data::{
    Cache, ChatPrompt, DataError, DataSettings, Dataset, Packing, Tokenizer, TokenizerSource,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat")
}

fn expected() -> Value {
    serde_json::from_str(&fs::read_to_string(folder().join("expected.json")).unwrap()).unwrap()
}

/// The tokenizer of a folder with the template `name`. The special tokens come from a file beside it.
fn tokenizer(name: &str) -> (tempfile::TempDir, Tokenizer) {
    let own = tempfile::tempdir().unwrap();
    let config =
        r#"{"bos_token": {"content": "<|begin_of_text|>", "lstrip": false}, "eos_token": "<|endoftext|>"}"#;
    fs::write(own.path().join("tokenizer_config.json"), config).unwrap();
    for file in ["tokenizer.json", name] {
        let to = if file == name { "chat_template.jinja" } else { file };
        fs::copy(folder().join(file), own.path().join(to)).unwrap();
    }
    let tokenizer = TokenizerSource::File(own.path().join("tokenizer.json"));
    let tokenizer = Tokenizer::load(&tokenizer).unwrap();
    (own, tokenizer)
}

/// The conversations with the template `name`, each with its token ids and which of them are trained on.
fn conversations(name: &str) -> Vec<(Vec<u32>, Vec<bool>)> {
    let (own, tokenizer) = tokenizer(name);
    let settings = DataSettings { packing: Packing::Pad, damaged: 0.0, ..DataSettings::default() };
    let files = [folder().join("conversations.jsonl")];
    let cache = Cache::IfLarge(own.path());
    let dataset = Dataset::open(&files, &settings, &tokenizer, 1 << 12, cache, &mut |_| {}).unwrap();
    let read = |batch: Result<thinwire_data::MicroBatch, _>| {
        let batch = batch.unwrap();
        let ids = batch.inputs[..1].iter().chain(&batch.targets).copied().collect();
        (ids, batch.mask.expect("a question is not trained on"))
    };
    dataset.evaluation(0, 1).map(read).collect()
}

#[test]
fn tokens_and_masks_are_those_of_transformers() {
    let expected = expected();
    for family in ["chatml", "llama3", "qwen3"] {
        let expected = expected[family].as_array().unwrap();
        for template in [format!("{family}.jinja"), format!("{family}.plain.jinja")] {
            let found = conversations(&template);
            assert_eq!(found.len(), expected.len());
            for (at, ((ids, mask), expected)) in found.iter().zip(expected).enumerate() {
                let list =
                    |name: &str| expected[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
                assert!(list("ids").eq(ids.iter().map(|&id| u64::from(id))), "{template}, {at}: tokens");
                // The first token is never predicted.
                let expected: Vec<bool> = list("mask").skip(1).map(|flag| flag == 1).collect();
                assert_eq!(*mask, expected, "{template}, {at}: mask");
            }
        }
    }
}

#[test]
fn prompts_are_those_of_transformers_and_name_the_end_of_a_turn() {
    let expected = expected();
    // By their ids in `tokenizer.json`.
    for (family, end_of_turn) in [("chatml", 2), ("llama3", 6), ("qwen3", 2)] {
        for template in [format!("{family}.jinja"), format!("{family}.plain.jinja")] {
            let (_own, tokenizer) = tokenizer(&template);
            for prompt in expected["prompts"][family].as_array().unwrap() {
                let user = prompt["user"].as_str().unwrap().as_bytes();
                let (settings, system) = (DataSettings::default(), prompt["system"].as_str());
                let found = ChatPrompt::new(&tokenizer, &settings, system, user).unwrap();
                assert_eq!(serde_json::json!(found.tokens), prompt["ids"], "{template}");
                assert_eq!(found.end_of_turn, Some(end_of_turn), "{template}");
            }
        }
    }
}

#[test]
fn a_template_that_takes_no_such_messages_says_so() {
    let (own, tokenizer) = tokenizer("chatml.jinja");
    let prompt = |template: &str, user: &[u8]| {
        let path = own.path().join("other.jinja");
        fs::write(&path, template).unwrap();
        let settings = DataSettings { template: Some(path), ..DataSettings::default() };
        ChatPrompt::new(&tokenizer, &settings, Some("Be short."), user)
    };
    let raises = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}";
    let error = prompt(raises, b"Hi").unwrap_err();
    assert_eq!(error.to_string(), "the chat template: no system role");
    assert!(matches!(prompt("Hi", b"\xff"), Err(DataError::Message(_))));
    // Answers that end with no special token.
    assert_eq!(
        prompt("{{ messages[1].content }}", b"").unwrap(),
        ChatPrompt { tokens: vec![], end_of_turn: None }
    );
}
