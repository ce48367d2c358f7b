//! Typed access to the fields of a JSON object, with errors that name them.

use std::path::Path;

use serde_json::{Map, Value};

use crate::Error;

/// An object of a JSON file. A field that is `null` counts as absent, as it does for the transformers library.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    path: &'a Path,
    /// In front of names in messages: `rope_scaling.`, or nothing.
    prefix: &'a str,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &'a Path, prefix: &'a str, value: &'a Value) -> Result<Self, Error> {
        let object = value.as_object().ok_or_else(|| {
            let what = if prefix.is_empty() { "the file" } else { prefix.trim_end_matches('.') };
            Error::mismatch(path, what, "a JSON object", shown(value))
        })?;
        Ok(Self { path, prefix, object })
    }

    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(super) fn size(&self, name: &str) -> Result<Option<usize>, Error> {
        let as_size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        self.typed(name, "a whole number", as_size)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// For the result of the above: the value, or the error that there is none.
    pub(super) fn needed<T>(&self, name: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| Error::mismatch(self.path, self.quoted(name), "a value", "none"))
    }

    /// Refuses every value of the field except `supported`; an absent field is fine.
    pub(super) fn only(&self, name: &str, supported: &[Value]) -> Result<(), Error> {
        match self.get(name) {
            Some(value) if !supported.iter().any(|other| same(value, other)) => {
                Err(self.refuse(name, &all(supported)))
            }
            _ => Ok(()),
        }
    }

    /// The error that the field's value is not supported.
    pub(super) fn refuse(&self, name: &str, supported: &str) -> Error {
        let found = self.get(name).map_or("absent".into(), shown);
        Error::unsupported(self.path, format_args!("{}{name}", self.prefix), found, supported)
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match convert(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::mismatch(self.path, self.quoted(name), expected, shown(value))),
        }
    }

    fn quoted(&self, name: &str) -> String {
        format!("field `{}{name}`", self.prefix)
    }
}

/// Equal as JSON, or as numbers: 1 and 1.0 are the same.
fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && b.is_number() && a.as_f64() == b.as_f64())
}

fn all(values: &[Value]) -> String {
    match values {
        [] => "no value".into(),
        values => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A value for a message, cut where it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{} ..", &text[..end]),
    }
}
