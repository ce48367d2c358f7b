use std::fmt;
use std::str::FromStr;

use crate::aqsgd::AqsgdSettings;
use crate::fixed::{Fixed, FixedSettings};
use crate::group::{Group, GroupSettings};
use crate::message::Message;
use crate::raw::{Raw, RawSettings};
use crate::raw_below::RawBelow;
use crate::tah::{Tah, TahSettings};
use crate::threads::Workers;
use crate::{Codec, CodecId, DType, Execution, NoMemory, RamMemory, Shape, SpecError};

mod fields;
#[cfg(feature = "serde")]
mod serde;

pub use fields::Fields;
pub(crate) use fields::{RAW_BELOW, write_raw_below};

/// A codec and its settings, as text: `tah`, `tah:g=32,a=c,p=0.5,hi=4,lo=3,tau=inf`, `fixed:bits=6,group=64`,
/// `raw:dtype=bf16`, `bf16`, `aqsgd:bits=4,group=64,keep=f32,first=f32`, `group:bits=4,group=128,quantizer=zero-aware`.
///
/// Settings left out keep their defaults. `Display` writes all of them, `raw_below` only where it is not 0, and round-trips through `FromStr`.
///
/// ```
/// use thinwire_codec::CodecSpec;
///
/// let spec: CodecSpec = "tah:g=32".parse()?;
/// assert_eq!(spec.to_string(), "tah:g=32,a=32,p=0.8,hi=4,lo=3,tau=2");
/// let mistyped = "tah:taw=3".parse::<CodecSpec>().unwrap_err();
/// assert!(mistyped.to_string().contains("did you mean `tau`"));
/// # Ok::<(), thinwire_codec::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CodecSpec {
    /// Uncompressed values.
    Raw(RawSettings),
    /// Symmetric fixed point.
    Fixed(FixedSettings),
    /// TAH-Quant.
    Tah(TahSettings),
    /// Differences to what is remembered of a sample.
    Aqsgd(AqsgdSettings),
    /// Uniform quantization of groups.
    Group(GroupSettings),
}

impl CodecSpec {
    const NAMES: [&'static str; 8] = ["tah", "fixed", "group", "aqsgd", "raw", "f32", "f16", "bf16"];

    /// The byte that names the codec in messages and frames; of tensors below [`CodecSpec::raw_below`] it is another:
    /// [`CodecSpec::sent_as`].
    pub const fn id(&self) -> CodecId {
        match self {
            Self::Raw(RawSettings { dtype: DType::F32 }) => CodecId::RawF32,
            Self::Raw(RawSettings { dtype: DType::F16 }) => CodecId::RawF16,
            Self::Raw(RawSettings { dtype: DType::BF16 }) => CodecId::RawBF16,
            Self::Fixed(_) => CodecId::Fixed,
            Self::Tah(_) => CodecId::Tah,
            Self::Aqsgd(_) => CodecId::Aqsgd,
            Self::Group(_) => CodecId::Group,
        }
    }

    /// The number of values from which on a tensor is sent by this codec. Smaller ones are sent raw, in their own format.
    pub const fn raw_below(&self) -> usize {
        match self {
            Self::Raw(_) | Self::Aqsgd(_) | Self::Group(_) => 0,
            Self::Fixed(settings) => settings.raw_below,
            Self::Tah(settings) => settings.raw_below,
        }
    }

    /// Whether a tensor is below [`CodecSpec::raw_below`].
    pub fn sends_raw(&self, shape: Shape) -> bool {
        shape.elements().is_ok_and(|values| values < self.raw_below())
    }

    /// The codec that writes the message of a tensor in `dtype`: this one, or raw below the threshold.
    pub fn sent_as(&self, shape: Shape, dtype: DType) -> CodecId {
        if self.sends_raw(shape) { Self::Raw(RawSettings { dtype }).id() } else { self.id() }
    }

    /// The codec itself, with scratch of its own, on one thread and the fastest instruction set.
    ///
    /// # Errors
    /// [`SpecError::Value`] if a setting is out of its range; a spec that was parsed is in range.
    /// As [`Execution::choose`].
    pub fn build(&self) -> Result<Box<dyn Codec>, SpecError> {
        self.build_with(Execution::choose()?)
    }

    /// [`CodecSpec::build`] with a choice of instruction set and threads. What AQ-SGD remembers lies in memory of the codec's
    /// own; [`AqsgdSettings::build`] takes another.
    ///
    /// # Errors
    /// [`SpecError::Value`] if a setting is out of its range, [`SpecError::Threads`] if there are no such threads to have.
    pub fn build_with(&self, execution: Execution) -> Result<Box<dyn Codec>, SpecError> {
        self.check()?;
        let workers = Workers::start(execution)?;
        let codec: Box<dyn Codec> = match *self {
            Self::Raw(settings) => Box::new(Message::new(Raw(settings), workers.clone())),
            Self::Fixed(settings) => Box::new(Message::new(Fixed(settings), workers.clone())),
            Self::Tah(settings) => Box::new(Message::new(Tah::new(settings), workers.clone())),
            Self::Group(settings) => Box::new(Message::new(Group(settings), workers.clone())),
            Self::Aqsgd(settings) => {
                return settings.build(execution, RamMemory::boxed(), RamMemory::boxed());
            }
        };
        Ok(match self.raw_below() {
            0 => codec,
            _ => Box::new(RawBelow::new(codec, &workers)),
        })
    }

    /// [`CodecSpec::build_with`], of a codec that [remembers nothing](NoMemory): to it, every sample comes for the first
    /// time.
    ///
    /// # Errors
    /// As [`CodecSpec::build_with`].
    pub fn build_memoryless(&self, execution: Execution) -> Result<Box<dyn Codec>, SpecError> {
        match self {
            Self::Aqsgd(settings) => settings.build(execution, Box::new(NoMemory), Box::new(NoMemory)),
            spec => spec.build_with(execution),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Raw(_) => Ok(()),
            Self::Fixed(settings) => settings.check(),
            Self::Tah(settings) => settings.check(),
            Self::Aqsgd(settings) => settings.check(),
            Self::Group(settings) => settings.check(),
        }
    }
}

impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(settings) => settings.fmt(f),
            Self::Fixed(settings) => settings.fmt(f),
            Self::Tah(settings) => settings.fmt(f),
            Self::Aqsgd(settings) => settings.fmt(f),
            Self::Group(settings) => settings.fmt(f),
        }
    }
}

impl FromStr for CodecSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, settings) = match text.split_once(':') {
            Some((name, settings)) => (name, Some(settings)),
            None => (text, None),
        };
        let spec = match name {
            "tah" => {
                Self::Tah(TahSettings::from_fields(&Fields::parse("tah", TahSettings::KEYS, settings)?)?)
            }
            "fixed" => Self::Fixed(FixedSettings::from_fields(&Fields::parse(
                "fixed",
                FixedSettings::KEYS,
                settings,
            )?)?),
            "aqsgd" => Self::Aqsgd(AqsgdSettings::from_fields(&Fields::parse(
                "aqsgd",
                AqsgdSettings::KEYS,
                settings,
            )?)?),
            "group" => Self::Group(GroupSettings::from_fields(&Fields::parse(
                "group",
                GroupSettings::KEYS,
                settings,
            )?)?),
            "raw" => {
                Self::Raw(RawSettings::from_fields(&Fields::parse("raw", RawSettings::KEYS, settings)?)?)
            }
            "f32" | "f16" | "bf16" if settings.is_some() => {
                return Err(SpecError::NoSettings { codec: name.to_owned() });
            }
            "f32" | "f16" | "bf16" => Self::Raw(RawSettings { dtype: name.parse()? }),
            _ => return Err(SpecError::unknown("codec", name, &Self::NAMES)),
        };
        spec.check()?;
        Ok(spec)
    }
}
