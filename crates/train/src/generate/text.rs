//! Tokens as they come, as text.

use crate::data::{TokenizeError, Tokenizer};

/// What a decoder puts where bytes are not UTF-8.
const REPLACEMENT: char = '\u{fffd}';

/// Turns tokens into pieces of text that join to the text of all of them. A character that spans tokens comes with its
/// last one.
#[derive(Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    /// The tokens of the last piece, since a token's text may depend on the one before, and those after it.
    ids: Vec<u32>,
    /// How many of them are told.
    told: usize,
}

impl<'a> TextStream<'a> {
    /// A stream that continues the tokens `before`.
    pub fn after(tokenizer: &'a Tokenizer, before: &[u32]) -> Self {
        let last = before.last().copied();
        Self { tokenizer, ids: last.into_iter().collect(), told: usize::from(last.is_some()) }
    }

    /// The text that `id` completes; empty inside a character.
    ///
    /// # Errors
    /// The token is not in the vocabulary, or the tokenizer fails.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizeError> {
        self.ids.push(id);
        let piece = self.rest()?;
        if piece.is_empty() || piece.ends_with(REPLACEMENT) {
            return Ok(String::new());
        }
        self.ids.drain(..self.told);
        self.told = self.ids.len();
        Ok(piece)
    }

    /// What is left of a character that never ended.
    ///
    /// # Errors
    /// The tokenizer fails.
    pub fn finish(self) -> Result<String, TokenizeError> {
        self.rest()
    }

    fn rest(&self) -> Result<String, TokenizeError> {
        let told = self.tokenizer.decode(&self.ids[..self.told])?;
        let all = self.tokenizer.decode(&self.ids)?;
        Ok(all.strip_prefix(told.as_str()).unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TokenizerSource;

    fn pieces(before: &[u32], bytes: &[u8]) -> (Vec<String>, String) {
        let tokenizer = Tokenizer::load(&TokenizerSource::Byte).unwrap();
        let mut stream = TextStream::after(&tokenizer, before);
        let pieces = bytes.iter().map(|&byte| stream.push(u32::from(byte)).unwrap()).collect();
        (pieces, stream.finish().unwrap())
    }

    #[test]
    fn characters_come_whole() {
        let (pieces, rest) = pieces(b"a".map(u32::from).as_slice(), "b\u{e9}\u{1f600}!".as_bytes());
        assert_eq!(pieces, ["b", "", "\u{e9}", "", "", "", "\u{1f600}", "!"]);
        assert_eq!(rest, "");
    }

    #[test]
    fn what_is_no_character_comes_as_such_in_the_end() {
        let (pieces, rest) = pieces(&[], &[0xc3, b'x', 0xe2, 0x82]);
        assert_eq!((pieces.concat().as_str(), rest.as_str()), ("\u{fffd}x", "\u{fffd}"));
    }
}
