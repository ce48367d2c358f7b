//! What values travel as.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thinwire_codec::{CodecSpec, DType, GroupSettings, RawSettings, SpecError};

/// `f32` (or `exact`), `bf16`, or `group:bits=4,...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    F32,
    Bf16,
    Group(GroupSettings),
}

/// A text that names no wire.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("expected f32 (or exact), bf16, or group with its settings, such as group:bits=4")]
    Unknown,
    #[error(transparent)]
    Group(#[from] SpecError),
}

impl Wire {
    pub(super) fn codec(self) -> CodecSpec {
        match self {
            Self::F32 => CodecSpec::Raw(RawSettings { dtype: DType::F32 }),
            Self::Bf16 => CodecSpec::Raw(RawSettings { dtype: DType::BF16 }),
            Self::Group(settings) => CodecSpec::Group(settings),
        }
    }

    /// Whether its errors are worth being given back.
    pub(super) fn can_be_compensated(self) -> bool {
        matches!(self, Self::Group(_))
    }

    /// As short as it can be told apart.
    pub(super) fn label(self) -> String {
        match self {
            Self::Group(settings)
                if settings == (GroupSettings { bits: settings.bits, ..Default::default() }) =>
            {
                format!("{} bits", settings.bits)
            }
            other => other.to_string(),
        }
    }

    /// The most that one rounding takes a value of up to `magnitude` away from itself.
    fn rounding(self, magnitude: f64) -> f64 {
        match self {
            Self::F32 => 0.0,
            Self::Bf16 => magnitude / 256.0, // half of the last of 8 binary digits
            // Half a step: that of the coarsest grid, the symmetric one. Scale and zero point are rounded to f16.
            Self::Group(settings) => {
                let step = magnitude / f64::from((1_u32 << (settings.bits - 1)) - 1);
                step / 2.0 + magnitude / 512.0
            }
        }
    }

    /// The most that a sum over `ranks` ranks, each adding up to `magnitude`, may be away from the exact one: all addends but
    /// the owner's are rounded, then the sum, and each of the f32 additions.
    pub(super) fn allowed_error(self, ranks: usize, magnitude: f64) -> f64 {
        let others = (ranks - 1) as f64;
        let of_addends = others * self.rounding(magnitude);
        let sum = ranks as f64 * magnitude + of_addends;
        of_addends + self.rounding(sum) + others * sum / f64::from(1 << 24)
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.pad("f32"),
            Self::Bf16 => f.pad("bf16"),
            Self::Group(settings) => settings.fmt(f),
        }
    }
}

impl FromStr for Wire {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        match text {
            "f32" | "exact" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            _ if text.split(':').next() == Some("group") => match text.parse()? {
                CodecSpec::Group(settings) => Ok(Self::Group(settings)),
                _ => Err(WireError::Unknown),
            },
            _ => Err(WireError::Unknown),
        }
    }
}

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_is_short_in_tables() {
        for (text, shown, label) in [
            ("exact", "f32", "f32"),
            ("bf16", "bf16", "bf16"),
            ("group", "group:bits=4,group=128,quantizer=zero-aware", "4 bits"),
            ("group:bits=8", "group:bits=8,group=128,quantizer=zero-aware", "8 bits"),
            (
                "group:group=64",
                "group:bits=4,group=64,quantizer=zero-aware",
                "group:bits=4,group=64,quantizer=zero-aware",
            ),
        ] {
            let wire: Wire = text.parse().unwrap();
            assert_eq!((wire.to_string().as_str(), wire.label().as_str()), (shown, label));
            assert_eq!(shown.parse::<Wire>().unwrap(), wire);
        }
        for (text, expected) in
            [("tah", "expected f32"), ("groups", "expected f32"), ("group:bits=9", "bits")]
        {
            let error = text.parse::<Wire>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn fewer_bits_may_be_further_off() {
        let allowed = |text: &str| text.parse::<Wire>().unwrap().allowed_error(4, 1.0);
        // Three addends and a sum of up to four times their size, half a step each.
        assert!((allowed("group") - (3.0 + 4.0 + 3.0 / 14.0) / 14.0).abs() < 0.02);
        assert!(allowed("f32") < 1e-6 && allowed("f32") < allowed("bf16"));
        assert!(
            allowed("bf16") < allowed("group:bits=8") && allowed("group:bits=8") < allowed("group") / 10.0
        );
    }
}
