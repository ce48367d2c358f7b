//! `--set section.key=value`.

use toml::{Table, Value};

use super::ConfigError;

/// Sets one dotted key of `table`. The value is read as TOML; what is not TOML is a string.
pub(super) fn apply(table: &mut Table, text: &str) -> Result<(), ConfigError> {
    let fail = |reason: String| ConfigError::Override { text: text.to_owned(), reason };
    let (key, value) = text.split_once('=').ok_or_else(|| fail("expected section.key=value".to_owned()))?;
    let value = value.trim();
    let value = value.parse().unwrap_or_else(|_| Value::String(value.to_owned()));

    let names: Vec<&str> = key.split('.').map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(fail(format!("the key `{key}` has an empty part")));
    }
    let (last, sections) = names.split_last().expect("split yields at least one part");
    let mut table = table;
    for name in sections {
        let section = table.entry(*name).or_insert_with(|| Value::Table(Table::new()));
        table = match section {
            Value::Table(section) => section,
            other => {
                return Err(fail(format!("`{name}` is no section but of type {}", other.type_str())));
            }
        };
    }
    table.insert((*last).to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, argument: &str) -> Result<Table, ConfigError> {
        let mut table = text.parse().unwrap();
        apply(&mut table, argument)?;
        Ok(table)
    }

    #[test]
    fn values_are_toml_or_else_strings() {
        for (argument, toml) in [
            ("a.b=3", "a.b = 3"),
            ("a.b = 3e-4", "a.b = 3e-4"),
            ("a.b=true", "a.b = true"),
            ("a.b=\"3\"", "a.b = '3'"),
            ("a.b=tah:g=32,a=32", "a.b = 'tah:g=32,a=32'"),
            ("a.b=100mbit", "a.b = '100mbit'"),
            ("a.b=1\nc=2", "a.b = '1\\nc=2'"),
            ("a.b=[\"embed 0\", \"1 head\"]", "a.b = ['embed 0', '1 head']"),
            ("c=[{x=1}]", "[[c]]\nx = 1"),
        ] {
            let expected: Table = toml.replace('\'', "\"").parse().unwrap();
            assert_eq!(set("", argument).unwrap(), expected, "{argument}");
        }
        let table = set("[a]\nb = 1\nc = 2", "a.b=5").unwrap();
        assert_eq!(table, "[a]\nb = 5\nc = 2".parse().unwrap());
    }

    #[test]
    fn malformed_overrides_are_refused() {
        for (argument, reason) in [
            ("train.steps", "expected section.key=value"),
            ("train..steps=1", "has an empty part"),
            ("=1", "has an empty part"),
            ("a.b=1", "`a` is no section but of type integer"),
        ] {
            let error = set("a = 1", argument).unwrap_err().to_string();
            assert!(error.starts_with("--set ") && error.contains(reason), "{argument}: {error}");
        }
    }
}
