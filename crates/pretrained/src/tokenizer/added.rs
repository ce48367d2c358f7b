//! The tokens of a GGUF file by kind.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::Error;
use crate::error::require;
use crate::gguf::Metadata;

const TOKENS: &str = "tokenizer.ggml.tokens";
const KINDS: &str = "tokenizer.ggml.token_type";

/// Numbers of `tokenizer.ggml.token_type`.
const NORMAL: i64 = 1;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;

/// The vocabulary of a file.
pub(super) struct Tokens<'a> {
    pub(super) path: &'a Path,
    pub(super) tokens: &'a [String],
    kinds: Option<&'a [i64]>,
}

impl<'a> Tokens<'a> {
    pub(super) fn read(metadata: &'a Metadata) -> Result<Self, Error> {
        let path = metadata.path();
        let tokens = metadata.needed(TOKENS, metadata.strings(TOKENS)?)?;
        let kinds = metadata.integers(KINDS)?;
        let found = kinds.map_or(tokens.len(), <[i64]>::len);
        let what = format_args!("length of metadata `{KINDS}`");
        require(found == tokens.len(), path, what, tokens.len(), found)?;
        let mut seen = HashSet::new();
        let twice = tokens.iter().find(|token| !seen.insert(token.as_str()));
        let what = format_args!("metadata `{TOKENS}`");
        require(twice.is_none(), path, what, "different tokens", format_args!("{twice:?} twice"))?;
        Ok(Self { path, tokens, kinds })
    }

    fn kind(&self, id: usize) -> i64 {
        self.kinds.map_or(NORMAL, |kinds| kinds[id])
    }

    /// Text to id, of all tokens that are in use: the rest fills a vocabulary up to a round number.
    pub(super) fn vocab(&self) -> Map<String, Value> {
        let used = self.tokens.iter().enumerate().filter(|(id, _)| self.kind(*id) != UNUSED);
        used.map(|(id, token)| (token.clone(), json!(id))).collect()
    }

    /// The tokens that are cut out of a text before anything else, as `added_tokens` of a `tokenizer.json`.
    pub(super) fn added(&self) -> Vec<Value> {
        let ids = 0..self.tokens.len();
        let added = ids.filter(|&id| matches!(self.kind(id), CONTROL | USER_DEFINED));
        added
            .map(|id| {
                json!({
                    "id": id,
                    "content": self.tokens[id],
                    "single_word": false,
                    "lstrip": false,
                    "rstrip": false,
                    "normalized": false,
                    "special": self.kind(id) == CONTROL,
                })
            })
            .collect()
    }
}
