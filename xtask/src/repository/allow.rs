//! A lint is switched off only with a reason, in code that is compiled out here too, where clippy does not look.

use super::Finding;
use super::files::Files;
use super::text::code;

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.with_extension("rs").filter(|file| file.path != file!()) {
        let mut offset = 0;
        for (index, line) in file.text.split_inclusive('\n').enumerate() {
            let code = code(line);
            let found = code.find("#[allow(").or_else(|| code.find("#![allow("));
            if let Some(at) = found {
                // An attribute may go on over lines.
                let rest = &file.text[offset + at..];
                let attribute = rest.find(")]").map_or(rest, |end| &rest[..end]);
                if !attribute.contains("reason =") {
                    findings.push(Finding::new(&file.path, index + 1, "`allow` without a reason"));
                }
            }
            offset += line.len();
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_allow() {
        let files = Files::of([
            ("a.rs", "//! docs\n#![allow(dead_code)]\n\n#[allow(\n    unused\n)]\nfn f() {}\n"),
            (
                "b.rs",
                "#[allow(unused, reason = \"x\")]\n#[allow(\n    unused,\n    reason = \"y\"\n)]\nfn f() {}\n",
            ),
            ("c.rs", "// #[allow(unused)]\n#[expect(unused)]\n"),
        ]);
        let expected = [2, 4].map(|line| Finding::new("a.rs", line, "`allow` without a reason"));
        assert_eq!(find(&files), expected);
    }
}
