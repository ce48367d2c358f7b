use std::fmt;
use std::str::FromStr;

use crate::SpecError;
use crate::spec::Fields;

/// A grid for the values of one group (Echo, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantizer {
    /// Levels on both sides of zero alike, a scale a group (equation 8).
    Symmetric,
    /// From the smallest value of the group to the largest, a scale and a zero point a group.
    Naive,
    /// The same, with a level on zero where the group has values of both signs (equation 9), which is where most values of an
    /// activation are.
    ZeroAware,
}

impl Quantizer {
    const ALL: [Self; 3] = [Self::Symmetric, Self::Naive, Self::ZeroAware];

    /// `symmetric`, `naive` or `zero-aware`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Symmetric => "symmetric",
            Self::Naive => "naive",
            Self::ZeroAware => "zero-aware",
        }
    }
}

impl fmt::Display for Quantizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Quantizer {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|quantizer| quantizer.name() == text);
        found.ok_or_else(|| SpecError::unknown("quantizer", text, &known))
    }
}

/// Uniform quantization of groups: `group:bits=4,group=128,quantizer=zero-aware`.
///
/// What the ranks of a collective send each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSettings {
    /// `bits`: bits of a code, 2 to 8.
    pub bits: u32,
    /// `group`: consecutive values that share their parameters, 2 to 1024, whose codes are whole bytes. The vector kernels are
    /// made for powers of two from 8 on and for multiples of 64.
    pub group: usize,
    /// `quantizer`: the grid.
    pub quantizer: Quantizer,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self { bits: 4, group: 128, quantizer: Quantizer::ZeroAware }
    }
}

impl GroupSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["bits", "group", "quantizer"];
    const BITS_RANGE: &'static str = "a whole number from 2 to 8";
    const GROUP_RANGE: &'static str = "from 2 to 1024, so that group * bits is a multiple of 8";

    /// The settings given in `fields`, and defaults for the others.
    ///
    /// # Errors
    /// A value that is no number, or no quantizer; [`GroupSettings::check`] is for their ranges.
    pub fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        let default = Self::default();
        Ok(Self {
            bits: fields.number("bits", default.bits, Self::BITS_RANGE)?,
            group: fields.number("group", default.group, Self::GROUP_RANGE)?,
            quantizer: fields.text("quantizer").map_or(Ok(default.quantizer), str::parse)?,
        })
    }

    /// Whether the settings are in their ranges.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), SpecError> {
        if !(2..=8).contains(&self.bits) {
            return Err(SpecError::value("bits", &self.bits, Self::BITS_RANGE));
        }
        if !(2..=1024).contains(&self.group) || !(self.group * self.bits as usize).is_multiple_of(8) {
            return Err(SpecError::value("group", &self.group, Self::GROUP_RANGE));
        }
        Ok(())
    }
}

impl fmt::Display for GroupSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bits, group, quantizer } = self;
        write!(f, "group:bits={bits},group={group},quantizer={quantizer}")
    }
}
