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

    /// Prints a piece of a text that is still coming; with `--json` it waits for the result. False when nobody reads on.
    pub(crate) fn piece(self, text: &str) -> io::Result<bool> {
        if self.json || text.is_empty() {
            return Ok(true);
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }

    /// Ends a text that was printed in pieces; its result goes to standard error, with `--json` to standard output.
    pub(crate) fn end_of_text<R: Serialize + Display>(self, result: &R) -> io::Result<()> {
        if self.json {
            return self.print(result);
        }
        self.piece("\n")?;
        writeln!(io::stderr(), "{result}")
    }

    /// Prints one result. A reader that has gone away (`thinwire ... | head`) is no error.
    pub(crate) fn print<R: Serialize + Display>(self, result: &R) -> io::Result<()> {
        let text = if self.json { serde_json::to_string(result)? } else { result.to_string() };
        let mut stdout = io::stdout().lock();
        let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }
}
