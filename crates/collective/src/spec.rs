use std::fmt;
use std::str::FromStr;

use thinwire_codec::{CodecSpec, DType, Fields, GroupSettings, RawSettings, SpecError};

use crate::Coefficients;

#[cfg(feature = "serde")]
mod serde;

/// How the ranks of a model add up activations, as text: `exact` (or `f32`), `bf16`, or
/// `echo:bits=4,group=128,quantizer=zero-aware,compensate=true,early=4`.
///
/// Settings left out keep their defaults. `Display` writes all of them and round-trips through `FromStr`.
///
/// ```
/// use thinwire_collective::AllReduceSpec;
///
/// let spec: AllReduceSpec = "echo:group=64,early=8".parse()?;
/// assert_eq!(spec.to_string(), "echo:bits=4,group=64,quantizer=zero-aware,compensate=true,early=8");
/// assert_eq!(spec.codec(0, 60).to_string(), "group:bits=8,group=64,quantizer=zero-aware");
/// assert_eq!(spec.codec(30, 60).to_string(), "group:bits=4,group=64,quantizer=zero-aware");
/// # Ok::<(), thinwire_codec::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllReduceSpec {
    /// Values travel as f32: nothing is rounded but the sums.
    #[default]
    Exact,
    /// Values travel as bf16.
    Bf16,
    /// Groups of values travel in a few bits each.
    Echo(EchoSettings),
}

/// The settings of `echo` (Echo, sections 4.3 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoSettings {
    /// `bits`, `group`, `quantizer`: the codec.
    pub group: GroupSettings,
    /// `compensate`: whether the errors of a call are given back in the next ones of its pass. Default true.
    pub compensate: bool,
    /// `early`: bits of a code in the first half of a pass's calls, 2 to 8. Default: as in the others.
    pub early: u32,
}

impl Default for EchoSettings {
    fn default() -> Self {
        let group = GroupSettings::default();
        Self { group, compensate: true, early: group.bits }
    }
}

impl AllReduceSpec {
    const NAMES: [&'static str; 3] = ["exact", "bf16", "echo"];

    /// The codec of call `call` (from 0) of a pass that has `calls` of them.
    pub fn codec(&self, call: usize, calls: usize) -> CodecSpec {
        match self {
            Self::Exact => raw(DType::F32),
            Self::Bf16 => raw(DType::BF16),
            Self::Echo(EchoSettings { group, early, .. }) => {
                let bits = if 2 * call < calls { *early } else { group.bits };
                CodecSpec::Group(GroupSettings { bits, ..*group })
            }
        }
    }

    /// The coefficients of the error feedback, where there is any.
    pub fn compensation(&self) -> Option<Coefficients> {
        matches!(self, Self::Echo(EchoSettings { compensate: true, .. })).then(Coefficients::default)
    }
}

fn raw(dtype: DType) -> CodecSpec {
    CodecSpec::Raw(RawSettings { dtype })
}

impl EchoSettings {
    const KEYS: [&'static str; 5] = ["bits", "group", "quantizer", "compensate", "early"];
    const EARLY_RANGE: &'static str = "a whole number from 2 to 8";

    fn parse(text: Option<&str>) -> Result<Self, SpecError> {
        let fields = Fields::parse("echo", &Self::KEYS, text)?;
        let group = GroupSettings::from_fields(&fields)?;
        let early = fields.number("early", group.bits, Self::EARLY_RANGE)?;
        group.check()?;
        if !(2..=8).contains(&early) {
            return Err(SpecError::value("early", &early, Self::EARLY_RANGE));
        }
        if !(group.group * early as usize).is_multiple_of(8) {
            return Err(SpecError::value("early", &early, "such that group * early is a multiple of 8"));
        }
        let compensate = fields.number("compensate", true, "true or false")?;
        Ok(Self { group, compensate, early })
    }
}

impl fmt::Display for AllReduceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Echo(EchoSettings { group, compensate, early }) = self else {
            return f.write_str(if *self == Self::Exact { "exact" } else { "bf16" });
        };
        let GroupSettings { bits, group, quantizer } = group;
        write!(
            f,
            "echo:bits={bits},group={group},quantizer={quantizer},compensate={compensate},early={early}"
        )
    }
}

impl FromStr for AllReduceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, settings) = match text.split_once(':') {
            Some((name, settings)) => (name, Some(settings)),
            None => (text, None),
        };
        match name {
            "exact" | "f32" | "bf16" if settings.is_some() => {
                Err(SpecError::NoSettings { codec: name.to_owned() })
            }
            "exact" | "f32" => Ok(Self::Exact),
            "bf16" => Ok(Self::Bf16),
            "echo" => EchoSettings::parse(settings).map(Self::Echo),
            _ => Err(SpecError::unknown("all-reduce", name, &Self::NAMES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in [
            "exact",
            "bf16",
            "echo:bits=4,group=128,quantizer=zero-aware,compensate=true,early=4",
            "echo:bits=3,group=64,quantizer=symmetric,compensate=false,early=8",
        ] {
            assert_eq!(text.parse::<AllReduceSpec>().unwrap().to_string(), text);
        }
        let default = AllReduceSpec::Echo(EchoSettings::default());
        assert_eq!("echo".parse(), Ok(default));
        assert_eq!(
            "echo:bits=8".parse::<AllReduceSpec>().unwrap().codec(0, 2).to_string(),
            "group:bits=8,group=128,quantizer=zero-aware"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("ekho", "echo"),
            ("exact:bits=4", "exact"),
            ("echo:bit=4", "bits"),
            ("echo:bits=9", "bits"),
            ("echo:early=1", "early"),
            ("echo:early=three", "early"),
            ("echo:compensate=perhaps", "true or false"),
            ("echo:group=3,bits=8,early=4", "early"),
            ("echo:group=3,bits=4,early=8", "group"),
            ("f32:bits=4", "f32"),
            ("echo:bits=4,bits=4", "bits"),
        ] {
            let error = text.parse::<AllReduceSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_first_half_of_the_calls_is_early() {
        let spec: AllReduceSpec = "echo:bits=3,early=8,group=64".parse().unwrap();
        let bits = |call, calls| match spec.codec(call, calls) {
            CodecSpec::Group(group) => group.bits,
            other => panic!("{other}"),
        };
        assert_eq!((0..5).map(|call| bits(call, 5)).collect::<Vec<_>>(), [8, 8, 8, 3, 3]);
        assert_eq!((0..4).map(|call| bits(call, 4)).collect::<Vec<_>>(), [8, 8, 3, 3]);
    }
}
