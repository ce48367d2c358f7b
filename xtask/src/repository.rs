//! Checks of the repository itself: what the compiler does not see.

mod allow;
mod dependencies;
mod files;
mod length;
mod links;
mod paths;
mod phrases;
mod text;
mod unfinished;
mod unsafe_code;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use files::Files;

use crate::phase::Outcome;

/// A rule of the repository and the search for what breaks it.
///
/// A check that has to spell out what it forbids leaves its own file out, by `file!()`.
struct Check {
    rule: &'static str,
    find: fn(&Files) -> Vec<Finding>,
}

const CHECKS: [Check; 8] = [
    Check { rule: "Rust files are short", find: length::find },
    Check { rule: "nothing is left unfinished", find: unfinished::find },
    Check { rule: "every `allow` has a reason", find: allow::find },
    Check { rule: "unsafe code stays in the files listed for it", find: unsafe_code::find },
    Check { rule: "every dependency is explained, and only those", find: dependencies::find },
    Check { rule: "relative links lead to a file", find: links::find },
    Check { rule: "no path of one machine", find: paths::find },
    Check { rule: "no word about how a text came to be", find: phrases::find },
];

/// Where a rule is broken, and how.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs every check on the checkout at `root`: one closing line on standard output, findings on standard error.
///
/// # Errors
///
/// 1 if a rule is broken, 2 if the files cannot be listed or read.
pub(crate) fn check(root: &Path) -> Outcome {
    let files = Files::read(root).map_err(|error| {
        eprintln!("error: {error}");
        2
    })?;
    let broken = CHECKS.iter().filter(|check| !holds(check, &files)).count();
    let line = match broken {
        0 => format!("repository: {} checks passed on {} files", CHECKS.len(), files.len()),
        _ => format!("repository: {broken} of {} checks FAILED on {} files", CHECKS.len(), files.len()),
    };
    let printed = writeln!(io::stdout(), "{line}");
    if broken == 0 && printed.is_ok() { Ok(()) } else { Err(1) }
}

fn holds(check: &Check, files: &Files) -> bool {
    let findings = (check.find)(files);
    if !findings.is_empty() {
        eprintln!("error: {}:", check.rule);
    }
    for finding in &findings {
        eprintln!("  {finding}");
    }
    findings.is_empty()
}
