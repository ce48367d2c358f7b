//! Questions from a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{ChoicesError, Format, Question, RecordError};

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// The questions of a file of JSON lines.
#[derive(Debug)]
pub struct Questions {
    /// Those that can be used, in order.
    pub questions: Vec<Question>,
    /// The others.
    pub damaged: Vec<Damaged>,
}

/// A line that is no question.
#[derive(Debug)]
pub struct Damaged {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: RecordError,
}

impl Questions {
    /// Reads `path` up to the `limit`-th question that can be used. Empty lines do not count.
    ///
    /// # Errors
    /// The file cannot be read, or has no question that can be used.
    pub fn read(path: &Path, format: Format, limit: Option<usize>) -> Result<Self, ChoicesError> {
        let unreadable = |source| ChoicesError::Read { path: path.into(), source };
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let (mut questions, mut damaged, mut line) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1.. {
            line.clear();
            let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(unreadable)?;
            if read == 0 || limit.is_some_and(|limit| questions.len() >= limit) {
                break;
            }
            let whole = line.ends_with(b"\n") || (read as u64) < MAX_LINE;
            if line.trim_ascii().is_empty() && whole {
                continue;
            }
            if !whole {
                reader.skip_until(b'\n').map_err(unreadable)?;
            }
            match serde_json::from_slice(&line).map_err(RecordError::Json).and_then(|r| format.question(&r)) {
                Ok(question) => questions.push(question),
                Err(reason) => damaged.push(Damaged { line: number, reason }),
            }
        }
        if questions.is_empty() {
            let first = damaged.first().map(|Damaged { line, reason }| format!("; line {line}: {reason}"));
            return Err(ChoicesError::NoQuestion { path: path.into(), damaged: damaged.len(), first });
        }
        Ok(Self { questions, damaged })
    }
}
