//! SentencePiece BPE (`tokenizer.ggml.model` is `llama`): a score for each token, the merges to be found from them.
//!
//! SentencePiece (Kudo and Richardson, 2018) joins the two neighbours whose concatenation has the best score, again and
//! again. The tokenizers library joins by rank, so every way to make a token of two others becomes a merge, ranked by the
//! token's score. Characters that are no token become tokens of their bytes.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::added::Tokens;
use crate::Error;
use crate::error::require;
use crate::gguf::Metadata;

const SCORES: &str = "tokenizer.ggml.scores";
const SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";

/// Rules for other texts than these, which files of this kind do not have.
const EXTRA_WHITESPACE: &str = "tokenizer.ggml.remove_extra_whitespaces";
const CHARACTER_MAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// What a space is inside a token.
const SPACE: &str = "\u{2581}";

/// `tokenizer.json` without a post-processor.
pub(super) fn json(metadata: &Metadata, tokens: &Tokens<'_>) -> Result<Value, Error> {
    if metadata.boolean(EXTRA_WHITESPACE)? == Some(true) {
        return Err(metadata.refuse(EXTRA_WHITESPACE, "false"));
    }
    if metadata.get(CHARACTER_MAP).is_some() {
        return Err(metadata.refuse(CHARACTER_MAP, "none"));
    }
    let prefix = metadata.boolean(SPACE_PREFIX)?.unwrap_or(true);
    let unknown = metadata.needed(UNKNOWN, tokens.special(metadata, UNKNOWN)?)?;
    let spaces = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    let prepend = json!({ "type": "Prepend", "prepend": SPACE });
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        // In a normalized text they are found however they write their spaces; a prefix would get in front of them.
        "added_tokens": tokens.added(!prefix),
        "normalizer": if prefix {
            json!({ "type": "Sequence", "normalizers": [prepend, spaces] })
        } else {
            spaces
        },
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": decoders },
        "model": {
            "type": "BPE",
            "unk_token": unknown.text,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": tokens.vocab(),
            "merges": merges(metadata, tokens)?,
        },
    }))
}

/// Pairs of normal tokens that make a third, the best scores first. Of one token's pairs those with the longer left part
/// come first, as in transformers.
fn merges<'a>(metadata: &Metadata, tokens: &Tokens<'a>) -> Result<Vec<[&'a str; 2]>, Error> {
    let scores = metadata.needed(SCORES, metadata.reals(SCORES)?)?;
    let (path, found) = (tokens.path, scores.len());
    let what = format_args!("length of metadata `{SCORES}`");
    require(found == tokens.texts.len(), path, what, tokens.texts.len(), found)?;
    let what = format_args!("metadata `{SCORES}`");
    let is_number = scores.iter().all(|score| !score.is_nan());
    require(is_number, path, what, "numbers", "NaN")?;
    let normal: HashSet<&str> = tokens.normal().map(|(_, text)| text).collect();
    let mut merges = Vec::new();
    for (id, text) in tokens.normal() {
        for (at, _) in text.char_indices().rev().filter(|&(at, _)| at > 0) {
            let (left, right) = text.split_at(at);
            if normal.contains(left) && normal.contains(right) {
                merges.push((scores[id], left, right));
            }
        }
    }
    // Stable: what has the same score stays in this order.
    merges.sort_by(|(score, ..), (other, ..)| other.total_cmp(score));
    Ok(merges.into_iter().map(|(_, left, right)| [left, right]).collect())
}
