//! A tokenizer in the metadata of a GGUF file.

use std::path::Path;

use serde_json::{Value, json};

use super::added::Tokens;
use super::byte_level::{self, Pre};
use super::{SpecialToken, TokenizerFiles, sentence_piece};
use crate::Error;
use crate::gguf::Metadata;

const MODEL: &str = "tokenizer.ggml.model";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";

pub(crate) fn from_gguf(path: &Path, metadata: &Metadata) -> Result<TokenizerFiles, Error> {
    let model = metadata.needed(MODEL, metadata.string(MODEL)?)?;
    let tokens = Tokens::read(metadata)?;
    if metadata.boolean(ADD_EOS)? == Some(true) {
        return Err(metadata.refuse(ADD_EOS, "false"));
    }
    let (mut json, by_default) = match model {
        "gpt2" => {
            let pre = Pre::read(metadata)?;
            (byte_level::json(metadata, &tokens, pre)?, pre.adds_bos())
        }
        "llama" => (sentence_piece::json(metadata, &tokens)?, true),
        _ => return Err(metadata.refuse(MODEL, "\"gpt2\" (byte-level BPE), \"llama\" (SentencePiece)")),
    };
    let special = |key| tokens.special(metadata, key);
    let bos = special("tokenizer.ggml.bos_token_id")?;
    let eos = special("tokenizer.ggml.eos_token_id")?;
    let add_bos = metadata.boolean(ADD_BOS)?.unwrap_or(by_default) && bos.is_some();
    if let (true, Some(bos)) = (add_bos, &bos) {
        json["post_processor"] = in_front(bos);
    }
    let end_of_turn = special("tokenizer.ggml.eot_token_id")?;
    let mut stop: Vec<u32> = eos.iter().chain(&end_of_turn).map(|token| token.id).collect();
    stop.dedup();
    Ok(TokenizerFiles {
        json: serde_json::to_vec(&json).map_err(Error::json(path))?,
        vocab_size: tokens.texts.len(),
        chat_template: metadata.string("tokenizer.chat_template")?.map(str::to_owned),
        bos,
        eos,
        stop,
        add_bos,
    })
}

/// A post-processor that puts `bos` in front of every text.
fn in_front(bos: &SpecialToken) -> Value {
    let SpecialToken { id, text } = bos;
    let special = |type_id: u8| json!({ "SpecialToken": { "id": text, "type_id": type_id } });
    let sequence = |name: &str, type_id: u8| json!({ "Sequence": { "id": name, "type_id": type_id } });
    json!({
        "type": "TemplateProcessing",
        "single": [special(0), sequence("A", 0)],
        "pair": [special(0), sequence("A", 0), special(1), sequence("B", 1)],
        "special_tokens": { text: { "id": text, "ids": [id], "tokens": [text] } },
    })
}
