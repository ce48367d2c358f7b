//! The header: a magic number, a version, a length, and a Python dictionary.

use std::str;

/// The first bytes of every file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// What the dictionary says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// Byte order, kind and size of a value, as in `<f4`.
    pub(super) descr: String,
    /// The first index varies fastest.
    pub(super) fortran_order: bool,
    pub(super) dims: Vec<usize>,
}

/// Why a .npy file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NpyError {
    /// The first bytes are others.
    #[error("it does not begin with \\x93NUMPY")]
    Magic,
    /// A version that did not exist when this was written.
    #[error("format version {major}.{minor}: expected 1.0, 2.0 or 3.0")]
    Version { major: u8, minor: u8 },
    /// The file ends within the header.
    #[error("it ends within its header")]
    Truncated,
    /// The dictionary is not the one `NumPy` writes.
    #[error("byte {at} of the header's dictionary: expected {expected}")]
    Syntax { at: usize, expected: &'static str },
    /// The dictionary lacks a key.
    #[error("the header has no {key}")]
    MissingKey { key: &'static str },
    /// Other numbers than this reader takes.
    #[error("values of type {found:?}: expected '<f4' or '<f2' (in NumPy: `array.astype('<f4')`)")]
    DType { found: String },
    /// The first index varies fastest.
    #[error("Fortran order: expected C order (in NumPy: `numpy.ascontiguousarray(array)`)")]
    FortranOrder,
    /// More or less data than the shape has.
    #[error("{found} bytes of data do not fit shape {dims:?} of {dtype:?}")]
    DataLength { dims: Vec<usize>, dtype: String, found: u64 },
    /// The shape does not fit a header of version 1.
    #[error("{found} dimensions do not fit a .npy header")]
    TooManyDimensions { found: usize },
}

impl Header {
    /// The header that `bytes` begin with, and the data after it.
    pub(super) fn split_from(bytes: &[u8]) -> Result<(Self, &[u8]), NpyError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
        let (&[major, minor], rest) = rest.split_first_chunk().ok_or(NpyError::Truncated)?;
        let (length, rest) = match (major, minor) {
            (1, 0) => {
                let (length, rest) = rest.split_first_chunk().ok_or(NpyError::Truncated)?;
                (usize::from(u16::from_le_bytes(*length)), rest)
            }
            (2 | 3, 0) => {
                let (length, rest) = rest.split_first_chunk().ok_or(NpyError::Truncated)?;
                (u32::from_le_bytes(*length) as usize, rest)
            }
            _ => return Err(NpyError::Version { major, minor }),
        };
        let (dict, data) = rest.split_at_checked(length).ok_or(NpyError::Truncated)?;
        Ok((Parser { dict, at: 0 }.header()?, data))
    }

    /// Bytes of the data; `None` if they cannot be counted.
    pub(super) fn data_len(&self) -> Option<u64> {
        let size = self.descr.trim_start_matches(|c: char| !c.is_ascii_digit());
        let size = size.split(|c: char| !c.is_ascii_digit()).next()?; // `<M8[ns]`
        let unit = if self.descr.contains('U') { 4 } else { 1 }; // UCS-4 characters
        let extents = self.dims.iter().map(|&extent| extent as u64);
        extents.chain([unit]).try_fold(size.parse().ok()?, u64::checked_mul)
    }
}

/// A cursor over the dictionary, `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct Parser<'a> {
    dict: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<Header, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "`{`")?;
        while !self.skip(b'}') {
            let start = self.at;
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            match key {
                b"descr" => descr = Some(self.string()?),
                b"fortran_order" => fortran_order = Some(self.boolean()?),
                b"shape" => shape = Some(self.tuple()?),
                _ => {
                    let expected = "'descr', 'fortran_order' or 'shape'";
                    return Err(NpyError::Syntax { at: start, expected });
                }
            }
            if !self.skip(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        self.end()?;
        let missing = |key| NpyError::MissingKey { key };
        Ok(Header {
            descr: String::from_utf8_lossy(descr.ok_or(missing("'descr'"))?).into_owned(),
            fortran_order: fortran_order.ok_or(missing("'fortran_order'"))?,
            dims: shape.ok_or(missing("'shape'"))?,
        })
    }

    fn string(&mut self) -> Result<&'a [u8], NpyError> {
        let quote = if self.skip(b'"') { b'"' } else { b'\'' };
        if quote == b'\'' {
            self.expect(quote, "a string")?;
        }
        let length = self.rest().iter().position(|&byte| byte == quote);
        let length = length.ok_or_else(|| self.error("the end of the string"))?;
        let text = &self.rest()[..length];
        self.at += length + 1;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.skip_spaces();
        for (text, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(text.as_bytes()) {
                self.at += text.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, NpyError> {
        let mut items = Vec::new();
        self.expect(b'(', "`(`")?;
        while !self.skip(b')') {
            items.push(self.number()?);
            if !self.skip(b',') {
                self.expect(b')', "`,` or `)`")?;
                break;
            }
        }
        Ok(items)
    }

    fn number(&mut self) -> Result<usize, NpyError> {
        self.skip_spaces();
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = str::from_utf8(&self.rest()[..digits]).unwrap_or_default();
        let number = text.parse().map_err(|_| self.error("an extent that fits this machine"))?;
        self.at += digits;
        Ok(number)
    }

    /// Nothing but padding may follow.
    fn end(mut self) -> Result<(), NpyError> {
        self.skip_spaces();
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("nothing but spaces")) }
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.skip(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    /// Passes over `byte`, and spaces in front of it, if it comes next.
    fn skip(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.rest().first() == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn rest(&self) -> &'a [u8] {
        &self.dict[self.at..]
    }

    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Syntax { at: self.at, expected }
    }
}
