//! A number of bytes, as it is written.

use std::str::FromStr;

/// Bytes of a weight file: a whole number, and KB, MB or GB (powers of 1000), as transformers has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShardSize(u64);

/// Why a text is no [`ShardSize`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a size above 0 such as 500MB or 5GB")]
pub(super) struct ShardSizeError;

impl ShardSize {
    pub(super) fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ShardSize {
    type Err = ShardSizeError;

    fn from_str(text: &str) -> Result<Self, ShardSizeError> {
        let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("", 1)];
        let split = units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
        let (digits, unit) = split.ok_or(ShardSizeError)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ShardSizeError); // a sign, which integers may have
        }
        let number: u64 = digits.parse().map_err(|_| ShardSizeError)?;
        number.checked_mul(unit).filter(|bytes| *bytes > 0).map(Self).ok_or(ShardSizeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("5GB", 5_000_000_000), ("500MB", 500_000_000), ("2KB", 2000), ("1", 1), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(text.parse(), Ok(ShardSize(bytes)), "{text}");
        }
        for text in ["", "GB", "0", "0GB", "-1GB", "+1GB", "1.5GB", "5 GB", "5gb", "5GiB", "18446744073709551615KB"] {
            assert_eq!(text.parse::<ShardSize>(), Err(ShardSizeError), "{text}");
        }
    }
}
