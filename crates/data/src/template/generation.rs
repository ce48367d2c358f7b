//! `{% generation %}`: transformers' own block, in which a template says what the model has to produce.

use std::ops::Range;

use super::Rendered;
use crate::damage::RecordError;

/// The filter that the block becomes: a filter's block has the same rules for white space and scopes.
pub(super) const FILTER: &str = "thinwire_answer";

/// Around an answer. Never characters of a text: Unicode keeps them for use inside programs.
const BEGIN: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

/// Marks an answer.
pub(super) fn mark(answer: &str) -> String {
    format!("{BEGIN}{answer}{END}")
}

/// Whether a text has marks of its own, which could pass for those of an answer.
pub(super) fn has_marks(text: &str) -> bool {
    text.contains([BEGIN, END])
}

/// The template with filter blocks for its generation blocks, and whether it has any.
pub(super) fn rewrite(template: &str) -> (String, bool) {
    let mut out = String::with_capacity(template.len());
    let mut found = false;
    let mut rest = template;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let length = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(length);
        rest = after;
        let inner = tag.trim_start_matches("{%").trim_end_matches("%}");
        let name = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match name {
            "generation" => out.push_str(&tag.replacen(name, &format!("filter {FILTER}"), 1)),
            "endgeneration" => out.push_str(&tag.replacen(name, "endfilter", 1)),
            _ => out.push_str(tag),
        }
        found |= name == "generation";
    }
    out.push_str(rest);
    (out, found)
}

/// Takes the marks out of a rendered text.
pub(super) fn unmark(marked: &str) -> Result<Rendered, RecordError> {
    let mut text = String::with_capacity(marked.len());
    let mut answers: Vec<Range<usize>> = Vec::new();
    let mut begin = None;
    for character in marked.chars() {
        match (character, begin) {
            (BEGIN, None) => begin = Some(text.len()),
            (END, Some(start)) => {
                answers.push(start..text.len());
                begin = None;
            }
            (BEGIN | END, _) => return Err(RecordError::Reserved),
            _ => text.push(character),
        }
    }
    if begin.is_some() { Err(RecordError::Reserved) } else { Ok(Rendered { text, answers }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generation_blocks_change() {
        let template = "{%- if x %}{% generation %}a{% endgeneration -%}{%+generation-%}{{ '{%' }}{% set generation_x = 1 %}";
        let (rewritten, found) = rewrite(template);
        assert!(found);
        let expected = "{%- if x %}{% filter thinwire_answer %}a{% endfilter -%}{%+filter thinwire_answer-%}{{ '{%' }}{% set generation_x = 1 %}";
        assert_eq!(rewritten, expected);
        assert_eq!(rewrite("no {% tag"), ("no {% tag".to_owned(), false));
    }

    #[test]
    fn marks_become_ranges() {
        let rendered = unmark("q \u{fdd0}\u{e9}a\u{fdd1} q\u{fdd0}\u{fdd1}").unwrap();
        assert_eq!(rendered, Rendered { text: "q \u{e9}a q".to_owned(), answers: vec![2..5, 7..7] });
        for wrong in ["\u{fdd0}", "\u{fdd1}", "\u{fdd0}\u{fdd0}\u{fdd1}\u{fdd1}"] {
            assert_eq!(unmark(wrong), Err(RecordError::Reserved));
        }
    }
}
