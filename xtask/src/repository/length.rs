//! No Rust file is longer than a reader can hold in mind.

use super::Finding;
use super::files::Files;

/// Lines.
const LIMIT: usize = 600;

/// Files that may be longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

pub(super) fn find(files: &Files) -> Vec<Finding> {
    find_with(files, LONGER)
}

fn find_with(files: &Files, longer: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.with_extension("rs") {
        let length = file.text.lines().count();
        let listed = longer.iter().any(|(path, _)| *path == file.path);
        match (length > LIMIT, listed) {
            (true, false) => {
                findings.push(Finding::new(
                    &file.path,
                    length,
                    format!("{length} lines, the limit is {LIMIT}"),
                ));
            }
            (false, true) => {
                findings.push(Finding::new(
                    &file.path,
                    length,
                    "listed as longer than the limit, which it is not",
                ));
            }
            _ => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_too_many() {
        let (fits, long) = ("\n".repeat(LIMIT), "\n".repeat(LIMIT + 1));
        let files = Files::of([("fits.rs", &fits), ("long.rs", &long), ("long.txt", &long)]);

        assert_eq!(find_with(&files, &[]), [Finding::new("long.rs", 601, "601 lines, the limit is 600")]);
        assert_eq!(find_with(&files, &[("long.rs", "a table")]), []);
    }

    #[test]
    fn a_listed_file_has_to_need_it() {
        let files = Files::of([("short.rs", "\n")]);
        assert_eq!(find_with(&files, &[("short.rs", "a table")]).len(), 1);
    }
}
