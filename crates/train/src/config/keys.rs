//! Unknown keys. The known ones are asked of the section types themselves, so the two cannot disagree.

use serde::de::value::Error as ProbeError;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

use super::ConfigError;

/// Refuses the first key of `table` that `T` does not read.
pub(super) fn check<T: DeserializeOwned>(table: &Table) -> Result<(), ConfigError> {
    check_table(table, "", &known_keys::<T>())
}

fn check_table(table: &Table, parent: &str, known: &[String]) -> Result<(), ConfigError> {
    for (name, value) in table {
        let key = join(parent, name);
        if !known.contains(&key) {
            return Err(ConfigError::UnknownKey { hint: hint(&key, parent, known), key });
        }
        match value {
            Value::Table(table) => check_table(table, &key, known)?,
            Value::Array(items) => {
                for table in items.iter().filter_map(Value::as_table) {
                    check_table(table, &key, known)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// How alike two names must be (1: equal) for one to be taken for the other: `lr` and `learning_rate` are at 0.746,
/// words of other meaning, such as `precision` and `epsilon`, at 0.73 and less.
const ALIKE: f64 = 0.74;

/// The known key that `key` is meant to be, or else the keys that there are in its section.
fn hint(key: &str, parent: &str, known: &[String]) -> String {
    if let Some(nearest) = nearest(key, known) {
        return format!("did you mean {nearest}?");
    }
    let siblings: Vec<&str> =
        known.iter().filter(|key| section(key) == parent).map(|key| last_name(key)).collect();
    let (what, place) = if parent.is_empty() { ("sections", "") } else { ("keys of ", parent) };
    format!("the {what}{place} are {}", siblings.join(", "))
}

/// The known key most like `key`, if one is: one of the same name in another section, else one of its own section, else any.
fn nearest<'a>(key: &str, known: &'a [String]) -> Option<&'a str> {
    let of = |belongs: &dyn Fn(&str) -> bool| most_alike(key, known.iter().filter(|known| belongs(known)));
    of(&|known| last_name(known) == last_name(key))
        .or_else(|| of(&|known| section(known) == section(key)))
        .or_else(|| of(&|known| known != section(key)))
}

/// First by its last name, then as a whole. Jaro and Winkler's measure finds abbreviations as well as slips: `lr` is most
/// like `learning_rate`.
fn most_alike<'a>(key: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        let names = strsim::jaro_winkler(last_name(key), last_name(candidate));
        (names, strsim::jaro_winkler(key, candidate))
    };
    let alike = known.map(|known| (likeness(known), known.as_str()));
    let alike = alike.filter(|((names, _), _)| *names >= ALIKE);
    let best = alike.max_by(|((a_name, a_whole), _), ((b_name, b_whole), _)| {
        a_name.total_cmp(b_name).then(a_whole.total_cmp(b_whole))
    });
    best.map(|(_, known)| known)
}

fn section(key: &str) -> &str {
    key.rsplit_once('.').map_or("", |(section, _)| section)
}

fn last_name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// The dotted keys that `T` reads, outer tables first; the items of a list share one key.
pub(super) fn known_keys<T: DeserializeOwned>() -> Vec<String> {
    let mut known = vec![String::new()];
    let mut next = 0;
    while let Some(parent) = known.get(next).cloned() {
        let mut fields: &[&str] = &[];
        let path: Vec<&str> = parent.split('.').filter(|name| !name.is_empty()).collect();
        // The probe never yields a value: only what it saw matters.
        let _ = T::deserialize(Probe { path: &path, fields: &mut fields });
        known.extend(fields.iter().map(|name| join(&parent, name)));
        next += 1;
    }
    known.remove(0);
    known
}

/// A deserializer that walks down `path`, notes which fields the struct at its end asks for, and then fails.
struct Probe<'a> {
    path: &'a [&'a str],
    fields: &'a mut &'static [&'static str],
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ProbeError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        if self.path.is_empty() {
            *self.fields = fields;
            return Err(ProbeError::custom("probed"));
        }
        visitor.visit_map(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        visitor.visit_seq(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ProbeError> {
        Err(ProbeError::custom("not a table"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Probe<'_> {
    type Error = ProbeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ProbeError> {
        self.path.first().map(|name| seed.deserialize((*name).into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ProbeError> {
        seed.deserialize(Probe { path: &self.path[1..], fields: self.fields })
    }
}

impl<'de> SeqAccess<'de> for Probe<'_> {
    type Error = ProbeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, ProbeError> {
        seed.deserialize(Probe { path: self.path, fields: self.fields }).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its field names matter")]
    struct Outer {
        first: u8,
        inner: Option<Inner>,
        #[serde(rename = "item")]
        items: Vec<Inner>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its field names matter")]
    struct Inner {
        text: String,
        number: Option<f64>,
    }

    #[test]
    fn keys_come_from_the_types() {
        let expected = ["first", "inner", "item", "inner.text", "inner.number", "item.text", "item.number"];
        assert_eq!(known_keys::<Outer>(), expected);
    }

    #[test]
    fn nested_and_listed_keys_are_checked() {
        let table: Table = "first = 1\n[inner]\ntext = ''\n[[item]]\nnumber = 1.0".parse().unwrap();
        check::<Outer>(&table).unwrap();

        let table: Table = "[[item]]\nnumber = 1.0\n[[item]]\nnumbr = 1.0".parse().unwrap();
        let error = check::<Outer>(&table).unwrap_err();
        assert_eq!(error.to_string(), "item.numbr: unknown key; did you mean item.number?");
    }

    #[test]
    fn a_name_in_the_wrong_section_is_found() {
        let table: Table = "text = ''".parse().unwrap();
        let error = check::<Outer>(&table).unwrap_err();
        assert_eq!(error.to_string(), "text: unknown key; did you mean item.text?");
    }

    #[test]
    fn a_name_like_no_other_gets_the_names_there_are() {
        for (text, expected) in [
            ("foo.bar = 1", "foo: unknown key; the sections are first, inner, item"),
            ("[inner]\nzzz = 1", "inner.zzz: unknown key; the keys of inner are text, number"),
        ] {
            let error = check::<Outer>(&text.parse().unwrap()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
