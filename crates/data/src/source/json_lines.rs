//! JSON records, one a line.

use std::io::BufRead;

use super::{At, Failure, Visit, parse};
use crate::damage::RecordError;

/// Reads every line that is not blank; of one longer than `longest`, only the beginning is held.
pub(super) fn read(file: &mut impl BufRead, longest: usize, visit: &mut Visit<'_>) -> Result<(), Failure> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let Some(too_long) = next_line(file, longest, &mut line)? else { return Ok(()) };
        let record = line.trim_ascii();
        if too_long {
            visit(At::Line(number), Err(RecordError::TooLong { limit: longest }))?;
        } else if !record.is_empty() {
            visit(At::Line(number), parse(record))?;
        }
    }
}

/// The next line into `line`, and whether it is longer than that; `None` at the end of the file.
fn next_line(file: &mut impl BufRead, longest: usize, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    let (mut any, mut too_long) = (false, false);
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any.then_some(too_long));
        }
        any = true;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = end.unwrap_or(buffer.len());
        let room = longest - line.len();
        too_long |= part > room;
        line.extend_from_slice(&buffer[..part.min(room)]);
        file.consume(end.map_or(part, |end| end + 1));
        if end.is_some() {
            return Ok(Some(too_long));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::super::Content;
    use super::*;

    fn read_all(text: &[u8], longest: usize) -> Vec<(At, Result<Content, RecordError>)> {
        let mut found = Vec::new();
        let mut file = BufReader::with_capacity(3, text);
        read(&mut file, longest, &mut |at, content| {
            found.push((at, content));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn damaged_lines_do_not_hurt_their_neighbours() {
        let text = b"{\"a\": 1}\r\n\n{\"a\": \n{\"long\": \"0123456789\"}\n{\"a\": \"\xff\"}\n{\"a\": 2}";
        let found = read_all(text, 20);
        let ats: Vec<At> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(ats, [1, 3, 4, 5, 6].map(At::Line));
        assert!(found[0].1.is_ok() && found[4].1.is_ok());
        assert!(matches!(found[1].1, Err(RecordError::Json(_))));
        assert_eq!(found[2].1, Err(RecordError::TooLong { limit: 20 }));
        assert_eq!(found[3].1, Err(RecordError::NotUtf8));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = [b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat();
        assert!(matches!(read_all(&text, text.len())[..], [(At::Line(1), Err(RecordError::Json(_)))]));
    }
}
