//! A text as token ids.

use std::fs;
use std::path::Path;

use super::hash::sha256_hex;
use super::{DataError, Tokenizer};

/// A tokenized text of at least 2 tokens.
#[derive(Debug, Clone)]
pub struct Corpus {
    tokens: Vec<u32>,
    sha256: String,
}

impl Corpus {
    /// Reads and tokenizes the text at `path`, in one piece.
    ///
    /// # Errors
    /// The file cannot be read or tokenized, or holds fewer than 2 tokens.
    pub fn load(path: &Path, tokenizer: &Tokenizer) -> Result<Self, DataError> {
        Self::load_after(None, path, tokenizer)
    }

    /// As [`Corpus::load`], with the token `first` in front of the text.
    ///
    /// # Errors
    /// As [`Corpus::load`].
    pub fn load_after(first: Option<u32>, path: &Path, tokenizer: &Tokenizer) -> Result<Self, DataError> {
        let text = fs::read(path).map_err(|source| DataError::Read { path: path.into(), source })?;
        let encoded =
            tokenizer.encode(&text).map_err(|source| DataError::Text { path: path.into(), source })?;
        let tokens: Vec<u32> = first.into_iter().chain(encoded).collect();
        if tokens.len() < 2 {
            return Err(DataError::TooShort { path: path.into(), tokens: tokens.len() as u64 });
        }
        Ok(Self { tokens, sha256: sha256_hex(&text) })
    }

    /// The token ids, in order.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// SHA-256 of the text, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    #[cfg(test)]
    pub(super) fn from_tokens(tokens: Vec<u32>) -> Self {
        assert!(tokens.len() >= 2);
        Self { tokens, sha256: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenizerSource;

    fn load(contents: Option<&[u8]>) -> Result<Corpus, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        if let Some(contents) = contents {
            fs::write(&path, contents).unwrap();
        }
        let tokenizer = Tokenizer::load(&TokenizerSource::Byte).unwrap();
        Corpus::load(&path, &tokenizer).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_is_tokens_and_a_hash() {
        let corpus = load(Some(b"abc")).unwrap();
        assert_eq!(corpus.tokens(), [97, 98, 99]);
        // FIPS 180-2, appendix B.1.
        assert_eq!(corpus.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn the_excerpt_in_the_repository_holds_nothing_out_that_it_trains_on() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sotu");
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let (train, heldout, readme) = (read("train.txt"), read("heldout.txt"), read("README.md"));
        for (text, addresses, bytes) in [(&train, 35, "| 1,023,566 |"), (&heldout, 4, "| 107,601 |")] {
            assert_eq!(text.split("\n\n").count(), addresses);
            assert_eq!(text.len().to_string(), bytes.replace(['|', ',', ' '], ""));
            assert!(readme.contains(bytes));
        }
        // No piece of 40 words of a held-out address occurs in the training text.
        for address in heldout.split("\n\n") {
            let words: Vec<&str> = address.split(' ').collect();
            let shared = words.chunks(40).filter(|words| train.contains(&words.join(" "))).count();
            assert_eq!(shared, 0);
        }
    }

    #[test]
    fn texts_that_cannot_be_used_are_refused_by_name() {
        for (contents, reason) in [
            (None, ("cannot read", "text.txt")),
            (Some(&b""[..]), ("", "text.txt holds 0 tokens; at least 2 are needed")),
            (Some(b"a"), ("", "text.txt holds 1 tokens; at least 2 are needed")),
        ] {
            let error = load(contents).unwrap_err();
            assert!(error.starts_with(reason.0) && error.ends_with(reason.1), "{error}");
        }
    }
}
