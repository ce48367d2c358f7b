//! Bits a second.

use std::{fmt, num::NonZeroU64, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// A rate in bits a second, not zero; written as in `100 Mbit/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(NonZeroU64);

/// A text that is not a rate.
#[derive(Debug, thiserror::Error)]
#[error("rate {0:?}: expected a positive number and bit/s, kbit/s, Mbit/s or Gbit/s, as in \"100 Mbit/s\"")]
pub struct ParseRateError(String);

/// The units and their bits a second, the largest first.
const UNITS: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

impl Rate {
    /// This many bits a second; nothing for zero.
    pub fn bits(per_second: u64) -> Option<Self> {
        NonZeroU64::new(per_second).map(Self)
    }

    /// Bits a second.
    pub fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// How long `bytes` take; the longest there is if that is more.
    pub fn time_for(self, bytes: usize) -> Duration {
        Duration::try_from_secs_f64(bytes as f64 * 8.0 / self.0.get() as f64).unwrap_or(Duration::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get();
        // The largest unit that needs no more than three decimals, so that the text reads back as the same rate.
        let (unit, size) = UNITS
            .into_iter()
            .find(|(_, size)| bits >= *size && bits.is_multiple_of((size / 1000).max(1)))
            .unwrap_or(("bit/s", 1));
        let (whole, part) = (bits / size, bits % size * 1000 / size);
        if part == 0 {
            return write!(f, "{whole} {unit}");
        }
        write!(f, "{whole}.{} {unit}", format!("{part:03}").trim_end_matches('0'))
    }
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseRateError(text.to_owned());
        let (number, size) = UNITS
            .into_iter()
            .find_map(|(unit, size)| Some((text.trim().strip_suffix(unit)?, size)))
            .ok_or_else(refused)?;
        let number: f64 = number.trim().parse().map_err(|_| refused())?;
        let bits = (number * size as f64).round();
        // Above 2^53 the bits of a rate are no longer exact, and no link is that fast.
        if !(1.0..9.0e15).contains(&bits) {
            return Err(refused());
        }
        Self::bits(bits as u64).ok_or_else(refused)
    }
}

impl TryFrom<String> for Rate {
    type Error = ParseRateError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for (text, bits) in [
            ("100 Mbit/s", 100_000_000),
            ("1.5 Gbit/s", 1_500_000_000),
            ("56 kbit/s", 56_000),
            ("7 bit/s", 7),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.bits_per_second(), bits);
            assert_eq!(rate.to_string(), text);
        }
        for bits in [1, 999, 1_001, 1_234_567, 1_000_000_001, 123_456_789_012] {
            let rate = Rate::bits(bits).unwrap();
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate, "{rate}");
        }
        assert_eq!("100Mbit/s".parse::<Rate>().unwrap().bits_per_second(), 100_000_000);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "100", "0 bit/s", "-1 Mbit/s", "NaN bit/s", "inf Gbit/s", "1e30 bit/s", "100 MB/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_megabyte_at_eight_megabit_is_a_second() {
        assert_eq!(Rate::bits(8_000_000).unwrap().time_for(1_000_000), Duration::from_secs(1));
        assert_eq!(Rate::bits(1).unwrap().time_for(usize::MAX), Duration::MAX);
    }
}
