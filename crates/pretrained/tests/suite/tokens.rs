//! Tokenizers built from GGUF metadata, run by the `tokenizers` library, against byte-level BPE written out in Python.

use std::collections::BTreeMap;

use thinwire_pretrained::{Pretrained, SpecialToken, TokenizerFiles};
use tokenizers::Tokenizer;

use crate::support::{asset, fixture, read_fixture};

type Texts = Vec<(String, Vec<u32>)>;

fn check(name: &str, files: &TokenizerFiles, texts: &Texts) {
    let tokenizer = Tokenizer::from_bytes(&files.json).unwrap();
    for (text, expected) in texts {
        let encoding = tokenizer.encode(text.as_str(), false).unwrap();
        assert_eq!(encoding.get_ids(), expected, "{name} {text:?}");
        if files.json.windows(5).all(|bytes| bytes != b"\"NFC\"") {
            assert_eq!(&tokenizer.decode(expected, false).unwrap(), text, "{name}");
        }
    }
}

#[test]
fn small_vocabulary_with_every_way_of_splitting() {
    let texts: BTreeMap<String, Texts> = serde_json::from_slice(&read_fixture("small_tokens.json")).unwrap();
    for (name, pre) in [("gpt2", "gpt-2"), ("smollm", "smollm"), ("llama3", "llama-bpe"), ("qwen2", "qwen2")]
    {
        let model = Pretrained::open(fixture(&format!("models/{name}.gguf"))).unwrap();
        let files = model.tokenizer().unwrap();
        check(name, &files, &texts[pre]);
        let special = |id, text: &str| Some(SpecialToken { id, text: text.into() });
        assert_eq!((&files.bos, &files.eos), (&special(0, "<|im_start|>"), &special(1, "<|im_end|>")));
        assert_eq!((files.vocab_size, &files.stop[..], files.add_bos), (400, &[1][..], pre == "llama-bpe"));
        assert_eq!(files.chat_template.as_deref(), Some("{{ messages }}"));
    }
}

#[test]
fn begin_of_text_where_the_model_expects_it() {
    let files = Pretrained::open(fixture("models/llama3.gguf")).unwrap().tokenizer().unwrap();
    let tokenizer = Tokenizer::from_bytes(&files.json).unwrap();
    let with = tokenizer.encode("Hello", true).unwrap();
    let without = tokenizer.encode("Hello", false).unwrap();
    assert_eq!(with.get_ids(), [&[0], without.get_ids()].concat());
}

#[test]
fn smollm2() {
    let Some(path) = asset("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let files = Pretrained::open(path).unwrap().tokenizer().unwrap();
    check("smollm2", &files, &serde_json::from_slice(&read_fixture("real_tokens.json")).unwrap());
    assert_eq!((files.vocab_size, &files.stop[..], files.add_bos), (49_152, &[2][..], false));
    assert!(files.chat_template.unwrap().contains("You are a helpful AI assistant named SmolLM"));
}
