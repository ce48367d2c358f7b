//! Errors of commands, and how they are shown.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::stopped::Stopped;

/// How long a text waits for its reader.
const PATIENCE: Duration = Duration::from_secs(2);

/// What ends a command.
pub(crate) type CommandError = Box<dyn Error + Send + Sync>;

/// Writes the error and everything behind it to standard error.
pub(crate) fn report(error: &(dyn Error + 'static)) {
    say(chain(error));
}

/// Writes to standard error, for as long as somebody may be expected to read it. When nobody does, the exit code is all
/// that can be said.
pub(crate) fn say(text: String) {
    let (done, written) = channel();
    thread::spawn(move || {
        let _ = io::stderr().write_all(text.as_bytes());
        let _ = done.send(());
    });
    let _ = written.recv_timeout(PATIENCE);
}

/// The error and everything behind it on one line.
pub(crate) fn one_line(error: &(dyn Error + 'static)) -> String {
    thinwire_train::text::chain(error)
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let lead = if error.is::<Stopped>() { "" } else { "error: " }; // what was asked for is no error
    let mut text = format!("{lead}{error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = writeln!(text, "  because: {error}"); // writing to a string cannot fail
        cause = error.source();
    }
    text
}
