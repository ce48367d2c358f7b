//! Text that a peer sent, made fit for a terminal and a log.

/// At most `limit` characters of `text`, control and direction-changing characters escaped.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        if character.is_control() || changes_direction(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// The Unicode characters that reorder the text around them.
fn changes_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The longest prefix of `text` of at most `limit` bytes that ends between characters.
pub(crate) fn prefix(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_shortens() {
        assert_eq!(printable("a\x1b[31m\n\u{202e}é", 100), "a\\u{1b}[31m\\n\\u{202e}é");
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(printable("abc", 3), "abc");
    }

    #[test]
    fn a_prefix_keeps_characters_whole() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("aé", 3), "aé");
    }
}
