//! Results on standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

/// Prints results as text, or as one line of JSON each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints one result. A reader that has gone away (`thinwire ... | head`) is no error.
    pub(crate) fn print<R: Serialize + Display>(self, result: &R) -> io::Result<()> {
        let text = if self.json { serde_json::to_string(result)? } else { result.to_string() };
        let mut stdout = io::stdout().lock();
        let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }
}
