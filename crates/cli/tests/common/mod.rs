//! Running the binary under test.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// A `thinwire` command with these arguments.
pub(crate) fn thinwire<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinwire"));
    command.args(arguments);
    command
}

/// Runs the command, which must succeed without a word on standard error; its output is one line of JSON.
pub(crate) fn json(command: &mut Command) -> serde_json::Value {
    let output = command.arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Runs the command, which must fail with `code` and nothing on standard output; what it says.
pub(crate) fn failure(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
