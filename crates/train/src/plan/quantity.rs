//! Quantities with units, as people write them: `20 TFLOP/s`, `24GB`, `20 ms`.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A kind of quantity.
pub(super) trait Kind {
    /// What it is called in errors, with an example.
    const EXPECTED: &'static str;
    /// Units and what one of them is in the unit that the number is kept in.
    const UNITS: &'static [(&'static str, f64)];
}

/// Operations a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OperationRate {}

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bytes {}

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ByteRate {}

/// Bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BitRate {}

/// Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seconds {}

impl Kind for OperationRate {
    const EXPECTED: &'static str = "operations a second, as in \"20 TFLOP/s\"";
    const UNITS: &'static [(&'static str, f64)] =
        &[("PFLOP/s", 1e15), ("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6)];
}

impl Kind for Bytes {
    const EXPECTED: &'static str = "bytes, as in \"24GB\" or \"16 GiB\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("TiB", 1.099_511_627_776e12),
        ("GiB", 1_073_741_824.0),
        ("MiB", 1_048_576.0),
        ("TB", 1e12),
        ("GB", 1e9),
        ("MB", 1e6),
    ];
}

impl Kind for ByteRate {
    const EXPECTED: &'static str = "bytes a second, as in \"900 GB/s\"";
    const UNITS: &'static [(&'static str, f64)] = &[("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6)];
}

impl Kind for BitRate {
    const EXPECTED: &'static str = "bits a second, as in \"100 Mbit/s\" or \"100mbit\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("Gbit/s", 1e9),
        ("Mbit/s", 1e6),
        ("kbit/s", 1e3),
        ("gbit", 1e9),
        ("mbit", 1e6),
        ("kbit", 1e3),
        ("bit/s", 1.0),
    ];
}

impl Kind for Seconds {
    const EXPECTED: &'static str = "a time, as in \"20 ms\"";
    const UNITS: &'static [(&'static str, f64)] = &[("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)];
}

/// A finite number of them, not below 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity<K>(f64, PhantomData<K>);

/// A text that is no such quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}")]
pub(super) struct ParseQuantityError {
    expected: &'static str,
    found: String,
}

impl<K> Quantity<K> {
    /// In the kind's own unit.
    pub(super) fn value(self) -> f64 {
        self.0
    }
}

impl<K: Kind> FromStr for Quantity<K> {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let units = K::UNITS.iter();
        let split = units.filter_map(|(name, unit)| Some((text.trim().strip_suffix(name)?.trim_end(), unit)));
        let value = split.clone().find_map(|(number, unit)| Some(decimal(number)? * unit));
        let value = value.filter(|value| value.is_finite() && *value <= 1e30);
        value.map(|value| Self(value, PhantomData)).ok_or_else(|| ParseQuantityError {
            expected: K::EXPECTED,
            found: text.chars().take(40).collect(),
        })
    }
}

/// Digits with at most one point; no sign, exponent or word.
fn decimal(text: &str) -> Option<f64> {
    text.starts_with(|c: char| c.is_ascii_digit())
        .then_some(text)
        .filter(|text| text.chars().all(|c| c.is_ascii_digit() || c == '.'))?
        .parse()
        .ok()
}

impl<'de, K: Kind> Deserialize<'de> for Quantity<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<K>(PhantomData<K>);

        impl<K: Kind> serde::de::Visitor<'_> for Text<K> {
            type Value = Quantity<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(K::EXPECTED)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        let bytes = |text: &str| text.parse::<Quantity<Bytes>>().unwrap().value();
        assert_eq!([bytes("24GB"), bytes(" 1.5 GiB "), bytes("0MB")], [24e9, 1_610_612_736.0, 0.0]);
        let rate = |text: &str| text.parse::<Quantity<BitRate>>().unwrap().value();
        assert_eq!(
            [rate("100 Mbit/s"), rate("100mbit"), rate("2.5 Gbit/s"), rate("7 bit/s")],
            [1e8, 1e8, 2.5e9, 7.0]
        );
        let time = |text: &str| text.parse::<Quantity<Seconds>>().unwrap().value();
        assert_eq!([time("20 ms"), time("3s"), time("50us")], [0.02, 3.0, 50.0 * 1e-6]);
        assert_eq!("989.5 TFLOP/s".parse::<Quantity<OperationRate>>().unwrap().value(), 989.5e12);
    }

    #[test]
    fn all_else_is_refused() {
        let long = format!("1{}GB", "0".repeat(400));
        for text in [
            "", "GB", "24", "-1GB", "+1GB", "1e3GB", "nanGB", "infGB", "1.2.3GB", ".5GB", "24 gb", "1GB/s",
            &long,
        ] {
            assert!(text.parse::<Quantity<Bytes>>().is_err(), "{text}");
        }
        let error = "24 gb".parse::<Quantity<Bytes>>().unwrap_err();
        assert_eq!(error.to_string(), "expected bytes, as in \"24GB\" or \"16 GiB\", found \"24 gb\"");
    }
}
