//! The tokenizer whose tokens are the 256 bytes.

use serde_json::{Map, Value, json};

use super::TokenizerFiles;
use super::byte_level::byte_level;

impl TokenizerFiles {
    /// Every byte is a token, and its value the id. There are no special tokens.
    pub fn bytes() -> Self {
        let vocab: Map<String, Value> =
            characters().enumerate().map(|(byte, character)| (character.to_string(), json!(byte))).collect();
        let json = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [],
            "normalizer": null,
            "pre_tokenizer": byte_level(false),
            "post_processor": null,
            "decoder": byte_level(false),
            "model": { "type": "BPE", "dropout": null, "unk_token": null, "vocab": vocab, "merges": [] },
        });
        Self {
            json: json.to_string().into_bytes(),
            vocab_size: 256,
            chat_template: None,
            bos: None,
            eos: None,
            stop: Vec::new(),
            add_bos: false,
        }
    }
}

/// The printable character that byte-level BPE writes for each byte (`bytes_to_unicode` of GPT-2): itself where Latin-1
/// has a visible one, else the next from U+0100 on.
fn characters() -> impl Iterator<Item = char> {
    let mut others = '\u{100}'..;
    (0..=u8::MAX).map(move |byte| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE.. => char::from(byte),
        _ => others.next().expect("68 are needed"),
    })
}
