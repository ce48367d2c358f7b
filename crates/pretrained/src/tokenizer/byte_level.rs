//! Byte-level BPE (`tokenizer.ggml.model` is `gpt2`): vocabulary and merges as they are, and the splitting of a text into words by name.

use serde_json::{Value, json};

use super::added::Tokens;
use crate::Error;
use crate::error::require;
use crate::gguf::Metadata;

const PRE: &str = "tokenizer.ggml.pre";
const MERGES: &str = "tokenizer.ggml.merges";

/// How a text is cut into words before merging.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pre {
    Gpt2,
    SmolLm,
    Llama3,
    Qwen2,
}

impl Pre {
    pub(super) fn read(metadata: &Metadata) -> Result<Self, Error> {
        match metadata.string(PRE)? {
            Some("gpt-2") => Ok(Self::Gpt2),
            Some("smollm") => Ok(Self::SmolLm),
            Some("llama-bpe" | "llama3" | "llama-v3") => Ok(Self::Llama3),
            Some("qwen2" | "deepseek-r1-qwen") => Ok(Self::Qwen2),
            // Files from before the key came; only this architecture has one way.
            None if metadata.string("general.architecture")? == Some("gpt2") => Ok(Self::Gpt2),
            _ => Err(metadata.refuse(PRE, "\"gpt-2\", \"smollm\", \"llama-bpe\", \"qwen2\"")),
        }
    }

    /// Whether `tokenizer.ggml.add_bos_token` is true where it is absent.
    pub(super) fn adds_bos(self) -> bool {
        self == Self::Llama3
    }

    fn normalizer(self) -> Value {
        if self == Self::Qwen2 { json!({ "type": "NFC" }) } else { Value::Null }
    }

    fn pre_tokenizer(self) -> Value {
        match self {
            Self::Gpt2 => byte_level(true),
            Self::SmolLm => {
                sequence(&json!({ "type": "Digits", "individual_digits": true }), &byte_level(true))
            }
            Self::Llama3 => sequence(&split(r"\p{N}{1,3}"), &byte_level(false)),
            Self::Qwen2 => sequence(&split(r"\p{N}"), &byte_level(false)),
        }
    }
}

/// `tokenizer.json` without a post-processor.
pub(super) fn json(metadata: &Metadata, tokens: &Tokens<'_>, pre: Pre) -> Result<Value, Error> {
    let vocab = tokens.vocab();
    let lines = metadata.needed(MERGES, metadata.strings(MERGES)?)?;
    let mut merges = Vec::with_capacity(lines.len());
    for line in lines {
        let parts = line.split_once(' ').filter(|(left, right)| {
            vocab.contains_key(*left)
                && vocab.contains_key(*right)
                && vocab.contains_key(&[*left, right].concat())
        });
        let what = format_args!("metadata `{MERGES}`");
        require(
            parts.is_some(),
            tokens.path,
            what,
            "two tokens that make a third",
            format_args!("{line:?}"),
        )?;
        merges.extend(parts.map(|(left, right)| json!([left, right])));
    }
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": tokens.added(false),
        "normalizer": pre.normalizer(),
        "pre_tokenizer": pre.pre_tokenizer(),
        "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            // A word that is a token stays one, whatever the merges would make of it.
            "ignore_merges": pre == Pre::Llama3,
            "vocab": vocab,
            "merges": merges,
        },
    }))
}

fn sequence(first: &Value, second: &Value) -> Value {
    json!({ "type": "Sequence", "pretokenizers": [first, second] })
}

/// Bytes as printable characters; with `use_regex`, GPT-2's words.
pub(super) fn byte_level(use_regex: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex })
}

/// The words of Llama 3 and Qwen2, which differ in `digits`.
fn split(digits: &str) -> Value {
    let regex = [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
        digits,
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ];
    json!({ "type": "Split", "pattern": { "Regex": regex.concat() }, "behavior": "Isolated", "invert": false })
}
