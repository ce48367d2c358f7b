//! Nothing is left for later in the text itself.

use super::Finding;
use super::files::Files;
use super::text::has_word;

const MARKS: [&str; 3] = ["FIXME", "TODO", "XXX"];
const MACROS: [&str; 2] = ["todo!", "unimplemented!"];

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.texts().filter(|file| file.path != file!()) {
        for (number, line) in file.lines() {
            let mark = MARKS.iter().find(|mark| has_word(line, mark));
            let call = MACROS.iter().find(|call| file.has_extension("rs") && line.contains(*call));
            if let Some(found) = mark.or(call) {
                findings.push(Finding::new(&file.path, number, format!("`{found}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_macros() {
        let files = Files::of([
            ("a.md", "all done\n<!-- FIXME -->\n"),
            ("b.rs", "fn f() {\n    todo!()\n}\n// TODO: name\nfn g() { unimplemented!(\"g\") }\n"),
            ("c.rs", "fn todo() {}\nconst TODOS: u8 = 0;\n"),
            ("d.md", "the `todo!` macro"),
        ]);
        let found: Vec<String> = find(&files).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["a.md:2: `FIXME`", "b.rs:2: `todo!`", "b.rs:4: `TODO`", "b.rs:5: `unimplemented!`"]
        );
    }
}
