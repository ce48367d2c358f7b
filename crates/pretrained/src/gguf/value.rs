//! Values of metadata.

use std::path::Path;

use super::reader::Reader;
use crate::Error;
use crate::error::require;

/// A value of the metadata. Integers of all widths are one variant, by sign.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `u8`, `u16`, `u32` or `u64`.
    Unsigned(u64),
    /// `i8`, `i16`, `i32` or `i64`.
    Signed(i64),
    /// `f32`.
    F32(f32),
    /// `f64`.
    F64(f64),
    /// One byte, 0 or 1.
    Bool(bool),
    /// UTF-8.
    String(String),
    /// Values of one type.
    Array(Array),
}

/// An array of the metadata. Arrays of arrays are refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// Strings.
    Strings(Vec<String>),
    /// Integers that fit an `i64`.
    Integers(Vec<i64>),
    /// `f32` or `f64`.
    Floats(Vec<f64>),
    /// Booleans.
    Bools(Vec<bool>),
}

/// Number and size in bytes of each type; strings and arrays at least have a length.
const BYTES: [u64; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8];
const ARRAY: u32 = 9;

impl Value {
    /// Reads a type number and a value; `key` is for errors.
    pub(super) fn read(path: &Path, reader: &mut Reader, key: &str) -> Result<Self, Error> {
        let kind = reader.u32()?;
        if kind == ARRAY {
            Array::read(path, reader, key).map(Self::Array)
        } else {
            single(path, reader, key, kind)
        }
    }

    /// What it is, for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Unsigned(value) => value.to_string(),
            Self::Signed(value) => value.to_string(),
            Self::F32(value) => value.to_string(),
            Self::F64(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::String(value) => format!("\"{}\"", value.chars().take(80).collect::<String>()),
            Self::Array(_) => "an array".into(),
        }
    }
}

fn single(path: &Path, reader: &mut Reader, key: &str, kind: u32) -> Result<Value, Error> {
    Ok(match kind {
        0 => Value::Unsigned(u8::from_le_bytes(reader.array()?).into()),
        1 => Value::Signed(i8::from_le_bytes(reader.array()?).into()),
        2 => Value::Unsigned(u16::from_le_bytes(reader.array()?).into()),
        3 => Value::Signed(i16::from_le_bytes(reader.array()?).into()),
        4 => Value::Unsigned(u32::from_le_bytes(reader.array()?).into()),
        5 => Value::Signed(i32::from_le_bytes(reader.array()?).into()),
        6 => Value::F32(f32::from_le_bytes(reader.array()?)),
        7 => {
            let [byte] = reader.array()?;
            require(byte <= 1, path, format_args!("metadata `{key}`"), "a boolean, 0 or 1", byte)?;
            Value::Bool(byte == 1)
        }
        8 => Value::String(reader.string()?),
        10 => Value::Unsigned(u64::from_le_bytes(reader.array()?)),
        11 => Value::Signed(i64::from_le_bytes(reader.array()?)),
        12 => Value::F64(f64::from_le_bytes(reader.array()?)),
        _ => return Err(Error::mismatch(path, format_args!("type of metadata `{key}`"), "0 to 12", kind)),
    })
}

impl Array {
    fn read(path: &Path, reader: &mut Reader, key: &str) -> Result<Self, Error> {
        let (kind, len) = (reader.u32()?, reader.u64()?);
        let what = format_args!("element type of metadata `{key}`");
        let known = kind != ARRAY && (kind as usize) < BYTES.len();
        require(known, path, what, "0 to 8 or 10 to 12", kind)?;
        reader.claim(len, BYTES[kind as usize])?;
        let mut array = match kind {
            8 => Self::Strings(Vec::new()),
            7 => Self::Bools(Vec::new()),
            6 | 12 => Self::Floats(Vec::new()),
            _ => Self::Integers(Vec::new()),
        };
        for _ in 0..len {
            match (&mut array, single(path, reader, key, kind)?) {
                (Self::Strings(values), Value::String(value)) => values.push(value),
                (Self::Bools(values), Value::Bool(value)) => values.push(value),
                (Self::Floats(values), Value::F32(value)) => values.push(value.into()),
                (Self::Floats(values), Value::F64(value)) => values.push(value),
                (Self::Integers(values), Value::Signed(value)) => values.push(value),
                (Self::Integers(values), Value::Unsigned(value)) => {
                    let what = format_args!("element of metadata `{key}`");
                    let small = i64::try_from(value);
                    values.push(small.map_err(|_| Error::mismatch(path, what, "an i64", value))?);
                }
                (_, value) => unreachable!("{value:?} in an array of type {kind}"),
            }
        }
        Ok(array)
    }
}
