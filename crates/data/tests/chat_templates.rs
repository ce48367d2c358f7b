//! Conversations become the tokens and masks that transformers makes of them: see `chat/generate.py`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thinwire_data::{Cache, DataSettings, Dataset, Packing, Tokenizer, TokenizerSource};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat")
}

/// The conversations with the template `name`, each with its token ids and which of them are trained on.
fn conversations(name: &str) -> Vec<(Vec<u32>, Vec<bool>)> {
    // The special tokens come from a file beside the template.
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
    let expected: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("expected.json")).unwrap()).unwrap();
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
