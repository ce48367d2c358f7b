//! Bandwidths: `100mbit`, `1gbit`, `56kbit`, or a bare number of bits a second.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thinwire_link::Rate;

/// A [`Rate`] as the configuration writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(Rate);

/// A text that is no bandwidth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a bandwidth above 0 such as 56kbit, 100mbit, 2.5gbit, or whole bits a second")]
pub struct BandwidthError;

const UNITS: [(&str, u64); 4] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl Bandwidth {
    /// `None` for 0 bits a second.
    pub fn new(bits_per_second: u64) -> Option<Self> {
        Rate::bits(bits_per_second).map(Self)
    }

    /// The rate a link is held to.
    pub fn rate(self) -> Rate {
        self.0
    }
}

impl FromStr for Bandwidth {
    type Err = BandwidthError;

    fn from_str(text: &str) -> Result<Self, BandwidthError> {
        let text = text.trim();
        let (number, unit) = UNITS
            .into_iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)))
            .unwrap_or((text, 1));
        let bits = scaled(number, unit).ok_or(BandwidthError)?;
        Self::new(bits).ok_or(BandwidthError)
    }
}

/// `number * unit`, which must be whole; `number` is decimal digits with at most one point.
pub(super) fn scaled(number: &str, unit: u64) -> Option<u64> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10u64.checked_pow(fraction.len() as u32)?;
    let fraction = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    fraction.is_multiple_of(scale).then(|| whole.checked_add(fraction / scale))?
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.bits_per_second();
        let exact = UNITS.into_iter().find(|(_, unit)| bits.is_multiple_of(*unit));
        let (name, unit) = exact.unwrap_or(("bit", 1));
        write!(f, "{}{name}", bits / unit)
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BandwidthVisitor)
    }
}

struct BandwidthVisitor;

impl Visitor<'_> for BandwidthVisitor {
    type Value = Bandwidth;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a bandwidth such as \"100mbit\", or whole bits a second")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bandwidth, E> {
        text.parse().map_err(|error| E::custom(format_args!("`{text}`: {error}")))
    }

    fn visit_u64<E: serde::de::Error>(self, bits: u64) -> Result<Bandwidth, E> {
        Bandwidth::new(bits).ok_or_else(|| E::custom(format_args!("`{bits}`: {BandwidthError}")))
    }

    fn visit_i64<E: serde::de::Error>(self, bits: i64) -> Result<Bandwidth, E> {
        let positive = u64::try_from(bits).ok().and_then(Bandwidth::new);
        positive.ok_or_else(|| E::custom(format_args!("`{bits}`: {BandwidthError}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        for (text, bits, shown) in [
            ("100mbit", 100_000_000, "100mbit"),
            ("1gbit", 1_000_000_000, "1gbit"),
            ("56kbit", 56_000, "56kbit"),
            ("33.6kbit", 33_600, "33600bit"),
            ("2.5 gbit", 2_500_000_000, "2500mbit"),
            ("1", 1, "1bit"),
            ("1500000", 1_500_000, "1500kbit"),
            ("18446744073709551615bit", u64::MAX, "18446744073709551615bit"),
        ] {
            let bandwidth: Bandwidth = text.parse().unwrap();
            assert_eq!(bandwidth.rate().bits_per_second(), bits, "{text}");
            assert_eq!(bandwidth.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(bandwidth));
        }
    }

    #[test]
    fn what_is_no_bandwidth() {
        for text in [
            "",
            "mbit",
            "0",
            "0mbit",
            "-1mbit",
            "+1",
            "1e3",
            "1.kbit",
            ".5kbit",
            "1.2.3kbit",
            "0.5bit",
            "100 Mbit/s",
            "100MB",
            "nan",
            "18446744073709551616",
            "99999999999gbit",
            "1.000000000000000000001gbit",
        ] {
            assert_eq!(text.parse::<Bandwidth>(), Err(BandwidthError), "{text}");
        }
    }
}
