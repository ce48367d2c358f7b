//! Key and value pairs of a GGUF file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reader::Reader;
use super::value::{Array, Value};
use crate::Error;
use crate::error::require;

/// Least size of a pair in bytes: length of the key, type, one byte of value.
const LEAST: u64 = 8 + 4 + 1;

/// The metadata of a file, with typed access whose errors name the key.
#[derive(Debug)]
pub struct Metadata {
    path: PathBuf,
    values: BTreeMap<String, Value>,
}

impl Metadata {
    pub(super) fn read(path: &Path, reader: &mut Reader, pairs: u64) -> Result<Self, Error> {
        reader.claim(pairs, LEAST)?;
        let mut values = BTreeMap::new();
        for _ in 0..pairs {
            let key = reader.string()?;
            let value = Value::read(path, reader, &key)?;
            let what = format_args!("metadata `{key}`");
            require(!values.contains_key(&key), path, what, "one of this key", "more")?;
            values.insert(key, value);
        }
        Ok(Self { path: path.into(), values })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A string.
    ///
    /// # Errors
    /// As for all of these: the value is of another type.
    pub fn string(&self, key: &str) -> Result<Option<&str>, Error> {
        self.typed(key, "a string", |value| match value {
            Value::String(value) => Some(value.as_str()),
            _ => None,
        })
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// The value is of another type, or negative.
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>, Error> {
        self.typed(key, "a number from 0", |value| match value {
            Value::Unsigned(value) => Some(*value),
            Value::Signed(value) => u64::try_from(*value).ok(),
            _ => None,
        })
    }

    /// A real number: the shortest decimal that is the same f32, so that 1e-5 stays 1e-5.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn real(&self, key: &str) -> Result<Option<f64>, Error> {
        self.typed(key, "a real number", |value| match value {
            Value::F32(value) => value.to_string().parse().ok(),
            Value::F64(value) => Some(*value),
            _ => None,
        })
    }

    /// A boolean.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        self.typed(key, "a boolean", |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// An array of strings.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>, Error> {
        self.typed(key, "an array of strings", |value| match value {
            Value::Array(Array::Strings(values)) => Some(&values[..]),
            _ => None,
        })
    }

    /// An array of integers.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn integers(&self, key: &str) -> Result<Option<&[i64]>, Error> {
        self.typed(key, "an array of integers", |value| match value {
            Value::Array(Array::Integers(values)) => Some(&values[..]),
            _ => None,
        })
    }

    /// An array of real numbers.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn reals(&self, key: &str) -> Result<Option<&[f64]>, Error> {
        self.typed(key, "an array of real numbers", |value| match value {
            Value::Array(Array::Floats(values)) => Some(&values[..]),
            _ => None,
        })
    }

    /// For the result of the above: the value, or the error that there is none.
    pub(crate) fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| Error::mismatch(&self.path, format_args!("metadata `{key}`"), "a value", "none"))
    }

    /// The error that the value of a key is not supported.
    pub(crate) fn refuse(&self, key: &str, supported: &str) -> Error {
        let found = self.get(key).map_or("absent".into(), Value::shown);
        Error::unsupported(&self.path, key, found, supported)
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => {
                Err(Error::mismatch(&self.path, format_args!("metadata `{key}`"), expected, value.shown()))
            }
        }
    }
}
