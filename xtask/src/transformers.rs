//! Exported models in the real transformers library, which needs a Python with it.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::phase::Outcome;

/// Names a Python, such as that of a virtual environment, that has the packages of [`REQUIREMENTS`].
const VARIABLE: &str = "THINWIRE_TEST_PYTHON";

const REQUIREMENTS: &str = "tests/transformers/requirements.txt";

pub(crate) const TEST: [&str; 6] =
    ["-m", "unittest", "discover", "--verbose", "--start-directory", "tests/transformers"];

/// The Python to use, if one is named.
pub(crate) fn python() -> Option<String> {
    env::var(VARIABLE).ok().filter(|python| !python.is_empty())
}

/// # Errors
///
/// 2 if `python` is none, or lacks a package in the version that the tests were written for.
pub(crate) fn require_packages(root: &Path, python: &str) -> Outcome {
    let status = Command::new(python).arg("tests/transformers/packages.py").current_dir(root).status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    eprintln!("error: {VARIABLE} is `{python}`, which does not have the packages of {REQUIREMENTS};");
    eprintln!("`{python} -m pip install --requirement {REQUIREMENTS}` brings them");
    Err(2)
}
