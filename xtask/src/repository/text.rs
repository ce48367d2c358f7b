//! Plain searches in lines of text.

/// Byte offsets at which `word` stands in `line` as a whole word: no letter, digit or `_` on either side.
pub(super) fn word_positions(line: &str, word: &str) -> Vec<usize> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: usize| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    };
    line.match_indices(word).map(|(at, _)| at).filter(|&at| stands_alone(at)).collect()
}

pub(super) fn has_word(line: &str, word: &str) -> bool {
    !word_positions(line, word).is_empty()
}

/// A line of Rust without its `//` comment. A `//` inside a string ends it too, which hides the rest of that line.
pub(super) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        assert_eq!(word_positions("an ant, an_d an", "an"), [0, 13]);
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(has_word("éan an", "an"));
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(code("let x = 1; // one"), "let x = 1; ");
        assert_eq!(code("/// docs"), "");
    }
}
