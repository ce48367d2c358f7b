//! No text names a folder that exists on one machine only.

use super::Finding;
use super::files::Files;

/// Where people and clusters keep their own files.
const ROOTS: [&str; 8] =
    ["/Users/", "/home/", "/mnt/", "/root/", "/scratch/", "/work/", "/workspace/", r":\Users\"];

/// Users that stand for anybody.
const ANYBODY: [&str; 3] = ["me/", "user/", "you/"];

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.texts().filter(|file| file.path != file!()) {
        for (number, line) in file.lines() {
            if let Some(root) = ROOTS.iter().find(|root| names(line, root)) {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("a path of one machine: `{root}...`"),
                ));
            }
        }
    }
    findings
}

/// Whether a path in `line` begins at `root`, as opposed to having it further down.
fn names(line: &str, root: &str) -> bool {
    let in_path = |c: char| c.is_alphanumeric() || "_-.~/}>)".contains(c);
    line.match_indices(root).any(|(at, _)| {
        let rest = &line[at + root.len()..];
        let begins = root.starts_with(':') || !line[..at].ends_with(in_path);
        begins && !ANYBODY.iter().any(|user| rest.starts_with(user))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine() {
        let files = Files::of([
            ("a.md", "fine\nsee /home/ada/notes.txt\n"),
            ("b.rs", "const A: &str = \"/work/run\";\nconst B: &str = r\"C:\\Users\\ada\";\n"),
            ("c.sh", "cd ~/work/x $HOME/home/x target/work/y https://example.org/root/z /tmp/run\n"),
            ("d.rs", "const C: &str = \"/home/me/run\";\n"),
        ]);
        let found: Vec<String> = find(&files).iter().map(ToString::to_string).collect();
        let expected = ["a.md:2: `/home/...`", "b.rs:1: `/work/...`", r"b.rs:2: `:\Users\...`"];
        assert_eq!(found, expected.map(|line| line.replace(": `", ": a path of one machine: `")));
    }
}
