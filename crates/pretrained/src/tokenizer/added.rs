//! The tokens of a GGUF file by kind.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::SpecialToken;
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
    /// By id.
    pub(super) texts: &'a [String],
    kinds: Option<&'a [i64]>,
}

impl<'a> Tokens<'a> {
    pub(super) fn read(metadata: &'a Metadata) -> Result<Self, Error> {
        let path = metadata.path();
        let texts = metadata.needed(TOKENS, metadata.strings(TOKENS)?)?;
        let kinds = metadata.integers(KINDS)?;
        let found = kinds.map_or(texts.len(), <[i64]>::len);
        let what = format_args!("length of metadata `{KINDS}`");
        require(found == texts.len(), path, what, texts.len(), found)?;
        let mut seen = HashSet::new();
        let twice = texts.iter().find(|token| !seen.insert(token.as_str()));
        let what = format_args!("metadata `{TOKENS}`");
        require(twice.is_none(), path, what, "different tokens", format_args!("{twice:?} twice"))?;
        Ok(Self { path, texts, kinds })
    }

    fn kind(&self, id: usize) -> i64 {
        self.kinds.map_or(NORMAL, |kinds| kinds[id])
    }

    /// Text to id, of all tokens that are in use: the rest fills a vocabulary up to a round number.
    pub(super) fn vocab(&self) -> Map<String, Value> {
        let used = self.texts.iter().enumerate().filter(|(id, _)| self.kind(*id) != UNUSED);
        used.map(|(id, token)| (token.clone(), json!(id))).collect()
    }

    /// The tokens that are text and nothing else, with their ids.
    pub(super) fn normal(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        let tokens = self.texts.iter().map(String::as_str).enumerate();
        tokens.filter(|&(id, _)| self.kind(id) == NORMAL)
    }

    /// The token whose id is under `key`.
    pub(super) fn special(&self, metadata: &Metadata, key: &str) -> Result<Option<SpecialToken>, Error> {
        let Some(id) = metadata.unsigned(key)? else { return Ok(None) };
        let text = usize::try_from(id).ok().and_then(|id| self.texts.get(id));
        if let (Some(text), Ok(id)) = (text, u32::try_from(id)) {
            return Ok(Some(SpecialToken { id, text: text.clone() }));
        }
        let expected = format_args!("below {}", self.texts.len());
        Err(Error::mismatch(self.path, format_args!("metadata `{key}`"), expected, id))
    }

    /// The tokens that are cut out of a text before anything else, as `added_tokens` of a `tokenizer.json`. Control tokens
    /// are found in the text as it is, user-defined ones, if so wished, in the `normalized` one.
    pub(super) fn added(&self, normalized: bool) -> Vec<Value> {
        let ids = 0..self.texts.len();
        let added = ids.filter(|&id| matches!(self.kind(id), CONTROL | USER_DEFINED));
        added
            .map(|id| {
                json!({
                    "id": id,
                    "content": self.texts[id],
                    "single_word": false,
                    "lstrip": false,
                    "rstrip": false,
                    "normalized": normalized && self.kind(id) == USER_DEFINED,
                    "special": self.kind(id) == CONTROL,
                })
            })
            .collect()
    }
}
