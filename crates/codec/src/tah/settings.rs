use std::fmt;
use std::str::FromStr;

use crate::SpecError;
use crate::spec::{Fields, RAW_BELOW, write_raw_below};

/// TAH-Quant's settings: `tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2`, which are the defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TahSettings {
    /// `g`: channels of a quantization tile (`G`), a power of two from 8 to 1024.
    pub tile: usize,
    /// `a`: channels of an allocation tile (`A`). In text it follows `g` if left out.
    pub allocation: Allocation,
    /// `p`: the share of each sample's allocation tiles that gets the high width, 0 to 1.
    pub high_share: f64,
    /// `hi`: bits of a code in the tiles of highest entropy, 2 to 8, not below `lo`.
    pub high_bits: u32,
    /// `lo`: bits of a code in the other tiles, 2 to 8.
    pub low_bits: u32,
    /// `tau`: a tile whose largest magnitude is more than this many times the second largest is transformed.
    /// 0 transforms every tile (but all-zero ones, where it makes no difference), infinity none.
    pub outlier_ratio: f32,
    /// `by`: how the tiles of high width are found. In text only where it is not `entropy`.
    pub selection: Selection,
    /// `raw_below`: tensors of fewer values than this are sent raw, in their own number format.
    pub raw_below: usize,
}

/// How many neighbouring channels of a token share one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// This many channels, a multiple of the quantization tile, at most 1,048,576.
    Channels(usize),
    /// All channels of the token (`a=c`), whatever their number.
    Token,
}

/// How the encoder finds the allocation tiles that get the high width. The decoder is told which they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Those of highest entropy (section 3.2).
    Entropy,
    /// As many, spread evenly over the sample whatever is in it: what the other is measured against.
    Even,
}

impl Default for TahSettings {
    fn default() -> Self {
        Self {
            tile: 64,
            allocation: Allocation::Channels(64),
            high_share: 0.8,
            high_bits: 4,
            low_bits: 3,
            outlier_ratio: 2.0,
            selection: Selection::Entropy,
            raw_below: 0,
        }
    }
}

impl TahSettings {
    pub(crate) const KEYS: &'static [&'static str] = &["g", "a", "p", "hi", "lo", "tau", "by", RAW_BELOW];

    const MAX_ALLOCATION: usize = 1 << 20;
    const TILE_RANGE: &'static str = "a power of two from 8 to 1024";
    const SHARE_RANGE: &'static str = "a number from 0 to 1";
    const BITS_RANGE: &'static str = "a whole number from 2 to 8";
    const RATIO_RANGE: &'static str = "a number from 0 up, or inf";

    pub(crate) fn from_fields(fields: &Fields<'_>) -> Result<Self, SpecError> {
        let default = Self::default();
        let tile = fields.number("g", default.tile, Self::TILE_RANGE)?;
        Ok(Self {
            tile,
            allocation: fields.number("a", Allocation::Channels(tile), &Self::allocation_range(tile))?,
            high_share: fields.number("p", default.high_share, Self::SHARE_RANGE)?,
            high_bits: fields.number("hi", default.high_bits, Self::BITS_RANGE)?,
            low_bits: fields.number("lo", default.low_bits, Self::BITS_RANGE)?,
            outlier_ratio: fields.number("tau", default.outlier_ratio, Self::RATIO_RANGE)?,
            selection: fields.number("by", default.selection, "entropy or even")?,
            raw_below: fields.raw_below()?,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if !self.tile.is_power_of_two() || !(8..=1024).contains(&self.tile) {
            return Err(SpecError::value("g", &self.tile, Self::TILE_RANGE));
        }
        if let Allocation::Channels(channels) = self.allocation
            && (channels % self.tile != 0 || !(self.tile..=Self::MAX_ALLOCATION).contains(&channels))
        {
            return Err(SpecError::value("a", &channels, Self::allocation_range(self.tile)));
        }
        if !(0.0..=1.0).contains(&self.high_share) {
            return Err(SpecError::value("p", &self.high_share, Self::SHARE_RANGE));
        }
        for (key, bits) in [("hi", self.high_bits), ("lo", self.low_bits)] {
            if !(2..=8).contains(&bits) {
                return Err(SpecError::value(key, &bits, Self::BITS_RANGE));
            }
        }
        if self.high_bits < self.low_bits {
            return Err(SpecError::value("hi", &self.high_bits, format!("at least lo={}", self.low_bits)));
        }
        if self.outlier_ratio.is_nan() || self.outlier_ratio < 0.0 {
            return Err(SpecError::value("tau", &self.outlier_ratio, Self::RATIO_RANGE));
        }
        Ok(())
    }

    /// Bytes of the codes of tiles with these widths.
    pub(super) fn codes_len(&self, widths: &[u8]) -> usize {
        self.tile / 8 * widths.iter().map(|&width| usize::from(width)).sum::<usize>()
    }

    fn allocation_range(tile: usize) -> String {
        format!("c, or a multiple of g={tile} up to {}", Self::MAX_ALLOCATION)
    }
}

impl fmt::Display for TahSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tah:g={},a={},p={},hi={},lo={},tau={}",
            self.tile, self.allocation, self.high_share, self.high_bits, self.low_bits, self.outlier_ratio
        )?;
        if self.selection == Selection::Even {
            f.write_str(",by=even")?;
        }
        write_raw_below(f, self.raw_below)
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channels(channels) => channels.fmt(f),
            Self::Token => f.write_str("c"),
        }
    }
}

impl FromStr for Allocation {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "c" { Ok(Self::Token) } else { text.parse().map(Self::Channels) }
    }
}

impl FromStr for Selection {
    /// The text, which is no selection.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "entropy" => Ok(Self::Entropy),
            "even" => Ok(Self::Even),
            _ => Err(text.to_owned()),
        }
    }
}
