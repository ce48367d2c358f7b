//! The small files of a model folder, and its publication.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::Export;
use crate::folder::CONFIG;
use crate::tokenizer::{GENERATION_CONFIG, SpecialToken, TOKENIZER, TOKENIZER_CONFIG};
use crate::{Error, TokenizerFiles, config};

/// Writes everything except the weights.
pub(super) fn write(folder: &Path, export: &Export<'_>) -> Result<(), Error> {
    let mut model = config::to_json(export.config, export.format.name());
    let Some(tokenizer) = export.tokenizer else { return write_json(&folder.join(CONFIG), &model) };
    let ends = match tokenizer.stop[..] {
        [] => Value::Null,
        [id] => json!(id),
        ref ids => json!(ids),
    };
    let begin = json!(tokenizer.bos.as_ref().map(|bos| bos.id));
    model["bos_token_id"] = begin.clone();
    model["eos_token_id"] = ends.clone();
    write_json(&folder.join(CONFIG), &model)?;
    let generation = json!({ "bos_token_id": begin, "eos_token_id": ends });
    write_json(&folder.join(GENERATION_CONFIG), &generation)?;
    write_file(&folder.join(TOKENIZER), &tokenizer.json)?;
    write_json(&folder.join(TOKENIZER_CONFIG), &tokenizer_config(export, tokenizer))
}

fn tokenizer_config(export: &Export<'_>, tokenizer: &TokenizerFiles) -> Value {
    let text = |token: &Option<SpecialToken>| json!(token.as_ref().map(|token| &token.text));
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": text(&tokenizer.bos),
        "eos_token": text(&tokenizer.eos),
        "add_bos_token": tokenizer.add_bos,
        "model_max_length": export.config.context,
        "clean_up_tokenization_spaces": false,
        "chat_template": tokenizer.chat_template,
    })
}

pub(super) fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(Error::json(path))?;
    text.push('\n');
    write_file(path, text.as_bytes())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = File::create_new(path).map_err(Error::io("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io("write", path))
}
