//! Latencies: `20ms`, `1.5s`, `250us`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time as the configuration writes it, in whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Latency(Duration);

/// A text that is no latency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a latency such as 250us, 20ms or 1.5s, of whole microseconds, at most an hour")]
pub struct LatencyError;

/// Microseconds in each unit; `s` last, as the others end in it too.
const UNITS: [(&str, u64); 3] = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];

/// An hour, in microseconds: more is a slip.
const LONGEST: u64 = 3_600_000_000;

impl Latency {
    /// The time.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Self, LatencyError> {
        let text = text.trim();
        let unit = UNITS.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
        let (number, unit) = unit.ok_or(LatencyError)?;
        let micros = super::bandwidth::scaled(number.trim_end(), unit).ok_or(LatencyError)?;
        if micros > LONGEST {
            return Err(LatencyError);
        }
        Ok(Self(Duration::from_micros(micros)))
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros() as u64; // at most LONGEST
        let exact = UNITS.into_iter().rev().find(|(_, unit)| micros.is_multiple_of(*unit));
        let (name, unit) = exact.unwrap_or(("us", 1));
        write!(f, "{}{name}", micros / unit)
    }
}

impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format_args!("`{text}`: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        for (text, micros, shown) in [
            ("20ms", 20_000, "20ms"),
            ("1.5s", 1_500_000, "1500ms"),
            ("0.25 ms", 250, "250us"),
            ("0s", 0, "0s"),
            ("3600s", 3_600_000_000, "3600s"),
        ] {
            let latency: Latency = text.parse().unwrap();
            assert_eq!(latency.duration(), Duration::from_micros(micros), "{text}");
            assert_eq!(latency.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(latency));
        }
    }

    #[test]
    fn what_is_no_latency() {
        for text in ["", "20", "ms", "-1ms", "1e3us", "0.5us", "3600.000001s", "99999999999999s", "20 min"] {
            assert_eq!(text.parse::<Latency>(), Err(LatencyError), "{text}");
        }
    }
}
