//! JSON records in one array, taken out one by one: the array may be larger than memory, or cut off at its end.

use std::io::{self, BufRead};

use super::{At, Content, Failure, Visit, parse};
use crate::damage::RecordError;

/// Whether the file is an array: its first character that is not white space is `[`. White space is consumed.
pub(super) fn starts(file: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(false);
        }
        if let Some(first) = buffer.iter().find(|byte| !byte.is_ascii_whitespace()) {
            return Ok(*first == b'[');
        }
        let blank = buffer.len();
        file.consume(blank);
    }
}

/// Reads every element; of one longer than `longest`, only the beginning is held.
pub(super) fn read(file: &mut impl BufRead, longest: usize, visit: &mut Visit<'_>) -> Result<(), Failure> {
    let mut scanner = Scanner::default();
    let mut element = Element::default();
    let mut number = 0;
    let mut visit = |result| {
        number += 1;
        visit(At::Record(number), result)
    };
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let length = buffer.len();
        for &byte in buffer {
            match scanner.take(byte) {
                Step::Inside => element.push(byte, longest),
                Step::Between if !element.is_blank() => visit(std::mem::take(&mut element).parse(longest))?,
                Step::Between | Step::Outside => {}
            }
        }
        file.consume(length);
    }
    // An array that is not closed has lost nothing if its last element is.
    if !element.is_blank() {
        let closed = scanner.depth == 1 && !scanner.in_string;
        visit(if closed { element.parse(longest) } else { Err(RecordError::CutOff) })?;
    }
    Ok(())
}

#[derive(Default)]
struct Element {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Element {
    fn push(&mut self, byte: u8, longest: usize) {
        if self.bytes.len() < longest {
            self.bytes.push(byte);
        } else {
            self.too_long = true;
        }
    }

    fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    fn parse(self, longest: usize) -> Result<Content, RecordError> {
        if self.too_long {
            Err(RecordError::TooLong { limit: longest })
        } else {
            parse(self.bytes.trim_ascii())
        }
    }
}

/// Follows brackets and strings, no more.
#[derive(Default)]
struct Scanner {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

enum Step {
    /// A byte of an element.
    Inside,
    /// The comma behind an element, or the end of the array.
    Between,
    /// Before or behind the array.
    Outside,
}

impl Scanner {
    fn take(&mut self, byte: u8) -> Step {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return Step::Inside;
        }
        match byte {
            b'[' | b'{' => {
                self.depth += 1;
                if self.depth == 1 { Step::Outside } else { Step::Inside }
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 { Step::Between } else { Step::Inside }
            }
            b',' if self.depth == 1 => Step::Between,
            _ if self.depth == 0 => Step::Outside,
            b'"' => {
                self.in_string = true;
                Step::Inside
            }
            _ => Step::Inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read_all(text: &str, longest: usize) -> Vec<Result<Content, RecordError>> {
        let mut found = Vec::new();
        let mut file = BufReader::with_capacity(2, text.as_bytes());
        assert!(starts(&mut file).unwrap());
        read(&mut file, longest, &mut |at, content| {
            found.push(content);
            assert_eq!(at, At::Record(found.len() as u64));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn elements_come_one_by_one() {
        for text in ["[]", " [ ] ", "[", "[\n"] {
            assert_eq!(read_all(text, 99), []);
        }
        let found = read_all(" [ {\"a\": \"],}\\\"[\"}, {\"b\": [1, {\"c\": 2}]} ,\n3]\n", 99);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(Result::is_ok));
    }

    #[test]
    fn an_array_that_is_cut_off_loses_its_last_element() {
        let whole = "[{\"a\": \"x\"}, {\"a\": \"y\"}]";
        for end in 1..whole.len() {
            let found = read_all(&whole[..end], 99);
            let ok = found.iter().filter(|record| record.is_ok()).count();
            assert!(found.len() - ok <= 1, "{end}");
            assert!(found.last().is_none_or(|last| last.is_ok() || *last == Err(RecordError::CutOff)));
            assert_eq!(ok, usize::from(end >= 11) + usize::from(end >= 23), "{end}: {found:?}");
        }
    }

    #[test]
    fn damage_stays_in_its_element() {
        let found = read_all("[{\"a\": nope}, {\"a\": \"0123456789\"}, {\"a\": 1}]", 12);
        assert!(matches!(found[0], Err(RecordError::Json(_))));
        assert_eq!(found[1], Err(RecordError::TooLong { limit: 12 }));
        assert!(found[2].is_ok());
        let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(read_all(&deep, 1 << 20)[..], [Err(RecordError::Json(_))]));
    }
}
