//! A `tokenizer.json` and what stands beside it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{CHAT_TEMPLATE, GENERATION_CONFIG, SpecialToken, TOKENIZER_CONFIG, TokenizerFiles};
use crate::Error;
use crate::folder::{CONFIG, MAX_JSON, read_json};
use crate::stored::read_small;

/// Most bytes of a `tokenizer.json`; that of the largest vocabularies takes 35 MB.
const MAX_TOKENIZER: u64 = 256 << 20;

pub(super) fn read(path: &Path) -> Result<TokenizerFiles, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let bytes = read_small(path, MAX_TOKENIZER)?;
    let json: Value = serde_json::from_slice(&bytes).map_err(Error::json(path))?;
    let settings = optional(&folder.join(TOKENIZER_CONFIG))?;
    let special = |name| token(path, &json, &settings, name);
    let (bos, eos) = (special("bos_token")?, special("eos_token")?);
    let add_bos = match settings.get("add_bos_token").and_then(Value::as_bool) {
        Some(add_bos) => add_bos,
        None => bos.as_ref().is_some_and(|bos| begins_with(&json["post_processor"], &bos.text)),
    };
    Ok(TokenizerFiles {
        vocab_size: vocab_size(&json),
        chat_template: chat_template(folder, &settings)?,
        stop: stop(folder, eos.as_ref())?,
        add_bos: add_bos && bos.is_some(),
        bos,
        eos,
        json: bytes,
    })
}

/// A JSON file that may be absent.
fn optional(path: &Path) -> Result<Value, Error> {
    if path.is_file() { read_json(path) } else { Ok(Value::Null) }
}

/// A special token of the settings: a string, or an object with its `content`.
fn token(path: &Path, json: &Value, settings: &Value, name: &str) -> Result<Option<SpecialToken>, Error> {
    let value = &settings[name];
    let Some(text) = value.as_str().or_else(|| value["content"].as_str()) else { return Ok(None) };
    let added = json["added_tokens"].as_array().into_iter().flatten();
    let mut ids = added.filter(|token| token["content"] == text).map(|token| &token["id"]);
    let id = ids.next().or_else(|| json["model"]["vocab"].get(text)).and_then(id);
    let missing = || Error::mismatch(path, format_args!("{name} `{text}`"), "a token", "none");
    Ok(Some(SpecialToken { id: id.ok_or_else(missing)?, text: text.into() }))
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// The largest id and one. A vocabulary is an object of ids, or (Unigram) a list.
fn vocab_size(json: &Value) -> usize {
    let added = json["added_tokens"].as_array().into_iter().flatten().filter_map(|token| id(&token["id"]));
    let vocab = &json["model"]["vocab"];
    let own = vocab.as_object().into_iter().flat_map(|vocab| vocab.values()).filter_map(id);
    let listed = vocab.as_array().map_or(0, Vec::len);
    added.chain(own).map(|id| id as usize + 1).max().unwrap_or(0).max(listed)
}

/// Whether a post-processor puts the token `bos` in front of a text.
fn begins_with(processor: &Value, bos: &str) -> bool {
    let inner = processor["processors"].as_array().into_iter().flatten();
    processor["single"][0]["SpecialToken"]["id"] == bos
        || inner.into_iter().any(|inner| begins_with(inner, bos))
}

/// From its own file; else from the settings, as text or as a list of named templates with one `default`.
fn chat_template(folder: &Path, settings: &Value) -> Result<Option<String>, Error> {
    let path = folder.join(CHAT_TEMPLATE);
    if path.is_file() {
        let bytes = read_small(&path, MAX_JSON)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| Error::mismatch(&path, "the file", "UTF-8", error.utf8_error()))?;
        return Ok(Some(text));
    }
    let value = &settings["chat_template"];
    let mut named = value.as_array().into_iter().flatten();
    let default = named.find(|template| template["name"] == "default").map(|template| &template["template"]);
    Ok(default.unwrap_or(value).as_str().map(str::to_owned))
}

/// `eos_token_id` of the generation settings, else of the model's, else the tokenizer's.
fn stop(folder: &Path, eos: Option<&SpecialToken>) -> Result<Vec<u32>, Error> {
    for name in [GENERATION_CONFIG, CONFIG] {
        let settings = optional(&folder.join(name))?;
        let value = &settings["eos_token_id"];
        let ids: BTreeSet<u32> =
            value.as_array().into_iter().flatten().chain([value]).filter_map(id).collect();
        if !ids.is_empty() {
            return Ok(ids.into_iter().collect());
        }
    }
    Ok(eos.map(|eos| eos.id).into_iter().collect())
}
