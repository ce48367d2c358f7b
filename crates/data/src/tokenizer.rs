//! Text to token ids and back.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str;

use super::hash::sha256_hex;
use super::{DataError, TokenizeError, TokenizerSource, template};

/// A tokenizer and its identity.
#[derive(Debug)]
pub struct Tokenizer {
    kind: Kind,
    id: String,
    beside: Beside,
}

/// Where the rest of what a model says about texts is.
#[derive(Debug)]
enum Beside {
    Nothing,
    /// Where the `tokenizer.json` lies.
    Folder(PathBuf),
    /// In the model, whose path this is.
    Model(PathBuf, ModelTexts),
}

/// What a model says about texts, besides its tokenizer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelTexts {
    /// The Jinja template that turns a conversation into text.
    pub chat_template: Option<String>,
    /// Names such as `eos_token`, and the tokens' texts.
    pub special_tokens: BTreeMap<String, String>,
}

#[derive(Debug)]
enum Kind {
    Byte,
    File { tokenizer: Box<tokenizers::Tokenizer>, vocab_size: usize },
}

impl Tokenizer {
    /// Loads the tokenizer that `source` names.
    ///
    /// # Errors
    /// The `tokenizer.json` cannot be read or understood.
    pub fn load(source: &TokenizerSource) -> Result<Self, DataError> {
        match source {
            TokenizerSource::Byte => {
                Ok(Self { kind: Kind::Byte, id: "byte".to_owned(), beside: Beside::Nothing })
            }
            TokenizerSource::File(path) => Self::from_file(path),
        }
    }

    fn from_file(path: &Path) -> Result<Self, DataError> {
        let json = fs::read(path).map_err(|source| DataError::Read { path: path.into(), source })?;
        Self::from_json(&json, path, Beside::Folder(path.parent().unwrap_or(Path::new("")).into()))
    }

    /// The tokenizer of the model in `path`: its `tokenizer.json`, and what else it says about texts.
    ///
    /// # Errors
    /// It cannot be understood.
    pub fn of_model(json: &[u8], path: &Path, texts: ModelTexts) -> Result<Self, DataError> {
        Self::from_json(json, path, Beside::Model(path.into(), texts))
    }

    fn from_json(json: &[u8], path: &Path, beside: Beside) -> Result<Self, DataError> {
        let unusable = |source| DataError::Tokenizer { path: path.into(), source };
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(without_dropout(json)).map_err(unusable)?;
        // Settings for fixed-size model inputs, which would cut a corpus off without a word.
        tokenizer.with_truncation(None).map_err(unusable)?.with_padding(None);
        // Ids may have gaps, so the largest one counts.
        let vocab_size = tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        let id = format!("tokenizer.json sha256:{}", sha256_hex(json));
        Ok(Self { kind: Kind::File { tokenizer: Box::new(tokenizer), vocab_size }, id, beside })
    }

    /// Token ids lie below this.
    pub fn vocab_size(&self) -> usize {
        match self.kind {
            Kind::Byte => 256,
            Kind::File { vocab_size, .. } => vocab_size,
        }
    }

    /// `byte`, or `tokenizer.json sha256:` and the hash of the file: equal for equal tokenizers, on any
    /// machine.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token ids of `text`; special tokens are not added.
    ///
    /// # Errors
    /// With a `tokenizer.json`: the text is not UTF-8, or the tokenizer fails on it.
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, TokenizeError> {
        match &self.kind {
            Kind::Byte => Ok(text.iter().copied().map(u32::from).collect()),
            Kind::File { tokenizer, .. } => {
                let text = str::from_utf8(text).map_err(TokenizeError::NotUtf8)?;
                let encoding = tokenizer.encode_fast(text, false).map_err(TokenizeError::Tokenizer)?;
                Ok(encoding.get_ids().to_vec())
            }
        }
    }

    /// The token ids of `text`, each with the bytes of `text` that it stands for. A token that is a part of a character
    /// has the whole character.
    pub(crate) fn encode_with_places(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>, TokenizeError> {
        match &self.kind {
            Kind::Byte => Ok(text.bytes().enumerate().map(|(at, byte)| (byte.into(), at..at + 1)).collect()),
            Kind::File { tokenizer, .. } => {
                let encoding = tokenizer.encode(text, false).map_err(TokenizeError::Tokenizer)?;
                let places = encoding.get_offsets().iter().map(|&(start, end)| start..end);
                Ok(encoding.get_ids().iter().copied().zip(places).collect())
            }
        }
    }

    /// The id of a token by its text.
    pub(crate) fn token_id(&self, token: &str) -> Option<u32> {
        match &self.kind {
            Kind::Byte => token.as_bytes().first().filter(|_| token.len() == 1).copied().map(u32::from),
            Kind::File { tokenizer, .. } => tokenizer.token_to_id(token),
        }
    }

    /// The texts of the tokens that are no text, such as `<|im_end|>`; the longest first.
    pub(crate) fn special_tokens(&self) -> Vec<String> {
        match &self.kind {
            Kind::Byte => Vec::new(),
            Kind::File { tokenizer, .. } => {
                let added = tokenizer.get_added_tokens_decoder().into_values();
                let mut tokens: Vec<String> =
                    added.filter(|token| token.special).map(|token| token.content).collect();
                tokens.sort_unstable_by_key(|token| (Reverse(token.len()), token.clone()));
                tokens
            }
        }
    }

    /// What the model says about texts, and in which file; `None` for bytes.
    pub(crate) fn texts(&self) -> Result<Option<(PathBuf, ModelTexts)>, DataError> {
        match &self.beside {
            Beside::Nothing => Ok(None),
            Beside::Folder(folder) => template::find(folder).map(Some),
            Beside::Model(path, texts) => Ok(Some((path.clone(), texts.clone()))),
        }
    }

    /// The text of `ids`; what is not UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// An id is not in the vocabulary, or the tokenizer fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizeError> {
        let vocab_size = self.vocab_size();
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= vocab_size) {
            return Err(TokenizeError::UnknownToken { id, vocab_size });
        }
        match &self.kind {
            Kind::Byte => {
                let bytes: Vec<u8> = ids.iter().map(|&id| id as u8).collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Kind::File { tokenizer, .. } => tokenizer.decode(ids, false).map_err(TokenizeError::Tokenizer),
        }
    }
}

/// The file without BPE dropout, which would give other tokens at every reading. What is not JSON is left to the
/// tokenizer to refuse.
fn without_dropout(file: &[u8]) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(file) else { return file.to_vec() };
    match json.pointer_mut("/model/dropout") {
        Some(dropout) => *dropout = serde_json::Value::Null,
        None => return file.to_vec(),
    }
    json.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Write;

    use serde_json::json;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    use super::*;

    /// A byte-level BPE with the merge `t h`, whose file asks for truncation to 4 tokens.
    fn bpe_file() -> tempfile::NamedTempFile {
        let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
        alphabet.sort_unstable();
        let mut vocab: HashMap<String, usize> =
            alphabet.iter().enumerate().map(|(id, letter)| (letter.to_string(), id)).collect();
        vocab.insert("th".to_owned(), 300);
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let contents = json!({
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null,
                        "pad_id": 0, "pad_type_id": 0, "pad_token": "!"},
            "added_tokens": [], "normalizer": null, "post_processor": null,
            "pre_tokenizer": byte_level, "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocab, "merges": ["t h"]},
        });
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{contents}").unwrap();
        file
    }

    fn load_file(path: &Path) -> Result<Tokenizer, DataError> {
        Tokenizer::load(&TokenizerSource::File(path.into()))
    }

    #[test]
    fn bytes_are_tokens() {
        let tokenizer = Tokenizer::load(&TokenizerSource::Byte).unwrap();
        assert_eq!((tokenizer.id(), tokenizer.vocab_size()), ("byte", 256));
        assert_eq!(tokenizer.encode(b"a\xff").unwrap(), [97, 255]);
        assert_eq!(tokenizer.decode(&[0xc3, 0xa9, 97]).unwrap(), "\u{e9}a");
        let error = tokenizer.decode(&[256]).unwrap_err();
        assert_eq!(error.to_string(), "token 256 is not in the vocabulary of 256");
    }

    #[test]
    fn tokenizer_json_is_read_and_never_truncates_or_pads() {
        let file = bpe_file();
        let tokenizer = load_file(file.path()).unwrap();
        assert_eq!(tokenizer.vocab_size(), 301, "the largest id counts, gaps or not");
        let text = "the cloth\n\n of thr\u{e9}e";
        let ids = tokenizer.encode(text.as_bytes()).unwrap();
        assert_eq!(ids.len(), text.len() - 3, "three merges of two bytes");
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        assert!(matches!(tokenizer.encode(b"caf\xe9"), Err(TokenizeError::NotUtf8(_))));

        let hash = tokenizer.id().strip_prefix("tokenizer.json sha256:").unwrap();
        assert_eq!(hash, sha256_hex(&fs::read(file.path()).unwrap()));
    }

    #[test]
    fn dropout_is_switched_off() {
        let file = bpe_file();
        let text = "the three other clothes, then the rest".repeat(20);
        let expected = load_file(file.path()).unwrap().encode(text.as_bytes()).unwrap();
        let contents = fs::read_to_string(file.path()).unwrap();
        let dropping = contents.replacen("\"type\":\"BPE\"", "\"type\":\"BPE\",\"dropout\":0.5", 1);
        assert_ne!(dropping, contents);
        fs::write(file.path(), dropping).unwrap();
        assert_eq!(load_file(file.path()).unwrap().encode(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn unusable_tokenizer_files_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        assert!(matches!(load_file(&path), Err(DataError::Read { path: named, .. }) if named == path));
        for contents in ["", "{}", "[1, 2", "{\"model\": {\"type\": \"BPE\"}}"] {
            fs::write(&path, contents).unwrap();
            let error = load_file(&path).unwrap_err().to_string();
            assert!(error.ends_with("tokenizer.json is not a usable tokenizer.json"), "{error}");
        }
    }
}
