//! A file of text as one document.

use std::io::Read;

use super::{At, Content, Failure, Visit};

/// The largest piece, in bytes: tokenizers take a hundred times that. A longer text is cut behind a line, where hardly any
/// tokenizer has a token across.
const PIECE: usize = 4 << 20;

/// Reads the text in pieces.
pub(super) fn read(file: &mut impl Read, visit: &mut Visit<'_>) -> Result<(), Failure> {
    read_pieces(file, PIECE, visit)
}

fn read_pieces(file: &mut impl Read, most: usize, visit: &mut Visit<'_>) -> Result<(), Failure> {
    let mut piece = Vec::new();
    loop {
        let wanted = (most + 1 - piece.len()) as u64;
        file.by_ref().take(wanted).read_to_end(&mut piece)?;
        if piece.len() <= most {
            visit(At::Whole, Ok(Content::Text(piece, true)))?;
            return Ok(());
        }
        let rest = piece.split_off(cut(&piece));
        visit(At::Whole, Ok(Content::Text(piece, false)))?;
        piece = rest;
    }
}

/// Behind the last line, else in front of the last character.
fn cut(piece: &[u8]) -> usize {
    let line = piece.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
    let character = piece.iter().rposition(|&byte| byte & 0xc0 != 0x80);
    line.filter(|&at| at < piece.len()).or(character.filter(|&at| at > 0)).unwrap_or(piece.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &[u8], most: usize) -> Vec<(Vec<u8>, bool)> {
        let mut pieces = Vec::new();
        read_pieces(&mut &text[..], most, &mut |_, content| {
            let Ok(Content::Text(piece, last)) = content else { panic!("not a text") };
            pieces.push((piece, last));
            Ok(())
        })
        .unwrap();
        pieces
    }

    #[test]
    fn short_texts_are_one_piece() {
        for text in ["", "a", "a\nb\n"] {
            assert_eq!(pieces(text.as_bytes(), 4), [(text.as_bytes().to_vec(), true)]);
        }
    }

    #[test]
    fn long_texts_are_cut_behind_lines_or_between_characters() {
        let text = "ab\ncd\nefghij\u{e9}\u{e9}k\n\n\n";
        for most in 1..text.len() {
            let pieces = pieces(text.as_bytes(), most);
            let whole: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            assert_eq!(whole, text.as_bytes(), "{most}");
            assert!(pieces.iter().rev().skip(1).all(|(piece, last)| !last && !piece.is_empty()), "{most}");
            if most >= 4 {
                assert!(pieces.iter().all(|(piece, _)| std::str::from_utf8(piece).is_ok()), "{most}");
            }
        }
        assert_eq!(pieces(text.as_bytes(), 7)[0].0, b"ab\ncd\n");
    }
}
