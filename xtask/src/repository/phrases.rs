//! A text speaks of the thing, not of a conversation that its reader took no part in.

use super::Finding;
use super::files::Files;
use super::text::has_word;

const PHRASES: [&str; 6] =
    ["as discussed", "as instructed", "as requested", "previous session", "the brief", "the issue text"];

/// Prose by others, for training.
const QUOTED: &str = "data/";

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let own = files.texts().filter(|file| file.path != file!() && !file.path.starts_with(QUOTED));
    let mut findings = Vec::new();
    for file in own {
        for (number, line) in file.lines() {
            let line = line.to_lowercase();
            if let Some(phrase) = PHRASES.iter().find(|phrase| has_word(&line, phrase)) {
                findings.push(Finding::new(&file.path, number, format!("`{phrase}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn talk_about_talk() {
        let files = Files::of([
            ("a.rs", "// Rounds half to even.\n// As discussed, rounds half to even.\n"),
            ("b.md", "the briefest description\n"),
            ("data/c.txt", "as requested by the Congress\n"),
        ]);
        assert_eq!(find(&files), [Finding::new("a.rs", 2, "`as discussed`")]);
    }
}
