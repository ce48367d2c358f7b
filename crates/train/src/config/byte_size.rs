//! Numbers of bytes: `8GiB`, `500MB`, or a bare number.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes as the configuration writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// A text that is no number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number of B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 500MB or 8GiB")]
pub struct ByteSizeError;

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let text = text.trim();
        let unit =
            UNITS.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)));
        let (number, unit) = unit.unwrap_or((text, 1));
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ByteSizeError); // a sign, which integers may have
        }
        let number: u64 = number.parse().map_err(|_| ByteSizeError)?;
        number.checked_mul(unit).map(Self).ok_or(ByteSizeError)
    }
}

/// In the largest unit that it is a multiple of.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: u64| self.0 > 0 && self.0.is_multiple_of(unit);
        let largest = UNITS.into_iter().filter(|(_, unit)| fits(*unit)).max_by_key(|(_, unit)| *unit);
        let (name, unit) = largest.unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteSizeVisitor)
    }
}

struct ByteSizeVisitor;

impl Visitor<'_> for ByteSizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes such as \"8GiB\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse().map_err(|error| E::custom(format_args!("`{text}`: {error}")))
    }

    fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
        Ok(ByteSize(bytes))
    }

    fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
        let positive = u64::try_from(bytes).map(ByteSize);
        positive.map_err(|_| E::custom(format_args!("`{bytes}`: {ByteSizeError}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        for (text, bytes, shown) in [
            ("8GiB", 8 << 30, "8GiB"),
            ("1024MiB", 1 << 30, "1GiB"),
            ("500 MB", 500_000_000, "500MB"),
            ("1000", 1000, "1kB"),
            ("12345B", 12345, "12345B"),
            ("0", 0, "0B"),
            ("18446744073709551615", u64::MAX, "18446744073709551615B"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, shown), "{text}");
            assert_eq!(shown.parse(), Ok(size));
        }
        for text in ["", "GiB", "-1", "+1", "1.5GiB", "8gib", "8G", "8 Gi B", "18446744073709551615kB"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError), "{text}");
        }
    }
}
